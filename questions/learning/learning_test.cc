// Curves with planted truth.

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/learning/comparison.h"
#include "ott/questions/learning/learning_answer.h"

namespace ott::learning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = LearningVerdict::Kind;

double FallingLoss(double x) { return 1 + 3 * std::exp(-x / 300); }

// Runs of a loss over 1000 steps whose seeds differ by `level` for the whole run and by `noise` at a point.
std::vector<RunCurves> Runs(const std::string& side, int count, std::mt19937_64& random,
                            const std::function<double(double)>& loss, double every = 50, double level = 0.02,
                            double noise = 0.02) {
  std::normal_distribution<double> normal;
  std::vector<RunCurves> runs;
  for (int i = 0; i < count; ++i) {
    RunCurves run{absl::StrCat(side, i), "", {}};
    const double seed = level * normal(random);
    for (double x = every; x <= 1000; x += every)
      run.curves["loss"].push_back({x, loss(x) + seed + noise * normal(random)});
    runs.push_back(std::move(run));
  }
  return runs;
}

LearningVerdict Ask(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                    const LearningOptions& options = {}) {
  const absl::StatusOr<LearningVerdict> verdict = Compare(a, b, "step", options);
  EXPECT_TRUE(verdict.ok()) << verdict.status();
  return verdict.ok() ? *verdict : LearningVerdict();
}

class Learning : public ::testing::Test {
 protected:
  std::mt19937_64 random_{38};
  const std::vector<RunCurves> a_ = Runs("a", 10, random_, FallingLoss);
};

TEST_F(Learning, ATenthOfTheStepsThatIsLostIsFoundAndMeasured) {
  const LearningVerdict verdict =
      Ask(a_, Runs("b", 10, random_, [](double x) { return FallingLoss(0.9 * x); }));
  EXPECT_EQ(verdict.metrics(0).kind(), LearningVerdict::WORSE);
  EXPECT_LT(verdict.metrics(0).share_lost().low(), 0.1);
  EXPECT_GT(verdict.metrics(0).share_lost().high(), 0.1);
  EXPECT_GT(verdict.metrics(0).share_lost().low(), 0.05);
  EXPECT_TRUE(verdict.metrics(0).has_differs_from());
  EXPECT_EQ(AnswerLearning(verdict).finding(), Answer::BAD);
  EXPECT_THAT(ToText(verdict), HasSubstr("B is worse in loss: it loses"));
}

TEST_F(Learning, ABumpBelowTheSpreadOfTheRunsIsFoundAndHasADirection) {
  const auto bump = [](double x) { return FallingLoss(x) + (x > 350 && x < 650 ? 0.08 : 0); };
  int worse = 0;
  for (int trial = 0; trial < 10; ++trial) {
    const Kind kind = Ask(Runs("a", 10, random_, FallingLoss, 100, 0.1, 0.005),
                          Runs("b", 10, random_, bump, 100, 0.1, 0.005))
                          .metrics(0)
                          .kind();
    EXPECT_NE(kind, LearningVerdict::BETTER);
    worse += kind == LearningVerdict::WORSE;
  }
  EXPECT_GE(worse, 7);
}

// A run that is much worse than the others widens the spread, too.
TEST_F(Learning, OneRunOfLongTailsHidesNoLoss) {
  std::vector<RunCurves> b = Runs("b", 10, random_, [](double x) { return FallingLoss(x) + 0.08; });
  for (Point& point : b[0].curves["loss"]) point.y += 0.6;
  EXPECT_EQ(Ask(a_, b).metrics(0).kind(), LearningVerdict::WORSE);
}

TEST_F(Learning, OtherSeedsAreSeldomWorseOrBetter) {
  int different = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Kind kind =
        Ask(Runs("a", 6, random_, FallingLoss), Runs("b", 6, random_, FallingLoss)).metrics(0).kind();
    different += kind == LearningVerdict::WORSE || kind == LearningVerdict::BETTER;
  }
  EXPECT_LE(different, 9);
}

// A command that ignores its seed says nothing about others, however often it is run.
TEST_F(Learning, OneRunAgainAndAgainIsOneRun) {
  const std::vector<RunCurves> once = Runs("b", 1, random_, [](double x) { return FallingLoss(x) + 0.04; });
  std::vector<RunCurves> b(10, once[0]);
  b[3].curves["loss"].resize(15);  // as it was logged at an earlier checkpoint
  const LearningVerdict verdict = Ask(a_, b);
  EXPECT_EQ(verdict.metrics(0).kind(), LearningVerdict::CANNOT_TELL);
  EXPECT_EQ(verdict.num_a(), 10);
  EXPECT_EQ(verdict.num_b(), 1);
  EXPECT_THAT(ToText(verdict),
              HasSubstr("note: 9 runs of B are others again, to the last bit, and left out"));
  EXPECT_EQ(Ask(b, a_).num_a(), 1);
  EXPECT_EQ(Ask(b, b).metrics(0).kind(), LearningVerdict::AS_GOOD);
  std::vector<RunCurves> more = a_;
  more.push_back(a_[4]);
  EXPECT_EQ(Ask(more, b).metrics(0).p_value(), verdict.metrics(0).p_value());
  for (RunCurves& run : b) {
    for (Point& point : run.curves["loss"]) point.y = 9;
  }
  EXPECT_EQ(Ask(a_, b).num_b(), 10);
}

TEST_F(Learning, OneRunIsSeldomWorseOrBetterHoweverFewOthersThereAre) {
  double (*const flat)(double) = [](double) { return 1.0; };
  for (const int num_a : {2, 3, 4, 5, 9}) {
    int num_different = 0;
    for (int trial = 0; trial < 600; ++trial) {
      const std::function<double(double)> loss = trial % 2 == 0 ? flat : FallingLoss;
      const LearningVerdict verdict = Ask(Runs("a", num_a, random_, loss), Runs("b", 1, random_, loss));
      const Answer::Finding finding = AnswerLearning(verdict).finding();
      num_different += finding == Answer::BAD || verdict.metrics(0).kind() == LearningVerdict::BETTER;
    }
    EXPECT_LE(num_different, 12) << num_a;
  }
}

TEST_F(Learning, ALossBeyondAStatedMarginIsNeverAsGoodHoweverFewRunsHaveIt) {
  const auto far = [](double x) { return FallingLoss(x) + 20; };
  LearningOptions in_metric, in_steps;
  in_metric.margin = 1;
  in_steps.margin_share = 0.5;
  for (const int num_b : {1, 3, 10}) {
    for (const int num_far : {1, (num_b + 1) / 2, num_b}) {
      std::vector<RunCurves> b = Runs("b", num_b - num_far, random_, FallingLoss);
      for (RunCurves& run : Runs("far", num_far, random_, far)) b.push_back(std::move(run));
      for (const LearningOptions& options : {in_metric, in_steps}) {
        EXPECT_NE(Ask(a_, b, options).metrics(0).kind(), LearningVerdict::AS_GOOD)
            << num_far << " of " << num_b;
        EXPECT_NE(Ask(b, a_, options).metrics(0).kind(), LearningVerdict::AS_GOOD)
            << num_far << " of " << num_b;
      }
    }
  }
}

TEST_F(Learning, LostStepsAreMeasuredAlikeHoweverFewRunsLoseThem) {
  const std::vector<RunCurves> b = Runs("b", 10, random_, [](double x) { return FallingLoss(0.7 * x); });
  for (const int num_b : {3, 5, 7, 9, 10}) {
    EXPECT_NEAR(Ask(a_, {b.begin(), b.begin() + num_b}).metrics(0).share_lost().value(), 0.3, 0.06) << num_b;
  }
}

// Most programs stop where their loss is not finite.
TEST_F(Learning, ARunThatEndsAsItIsNotFiniteIsTheWorstFromThereOn) {
  for (const int num_b : {1, 10}) {
    std::vector<RunCurves> b = Runs("b", num_b, random_, FallingLoss);
    for (RunCurves& run : b) {
      run.curves["loss"].resize(5);
      run.curves["loss"].back().y = NAN;
    }
    const LearningVerdict verdict = Ask(a_, b);
    EXPECT_EQ(AnswerLearning(verdict).finding(), Answer::BAD);
    EXPECT_EQ(verdict.num_b(), num_b);
    ASSERT_GT(verdict.metrics_size(), 0);
    const LearningVerdict::Metric& metric = verdict.metrics(0);
    ASSERT_EQ(metric.points_size(), 20);
    EXPECT_EQ(metric.points(19).b().low(), metric.points(19).a().high());
    EXPECT_THAT(ToText(verdict), HasSubstr("is not finite from step 250 on"));
  }
}

// Each look at the full error is wrong in nearly half of the trials, which shows that the limit is one.
TEST_F(Learning, LooksTogetherAreWrongNoMoreOftenThanOne) {
  constexpr int kTrials = 60, kMostRuns = 12, kLimit = 20;
  LearningOptions together, each;
  together.max_runs = kMostRuns;
  together.error = each.error = 0.2;
  int wrong_together = 0, wrong_each = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::vector<RunCurves> a = Runs("a", kMostRuns, random_, FallingLoss, 250),
                                 b = Runs("b", kMostRuns, random_, FallingLoss, 250);
    const auto is_ever_wrong = [&](const LearningOptions& options) {
      for (int n = 4; n <= kMostRuns; n += 2) {
        const Kind kind =
            Ask({a.begin(), a.begin() + n}, {b.begin(), b.begin() + n}, options).metrics(0).kind();
        if (kind == LearningVerdict::WORSE || kind == LearningVerdict::BETTER) return true;
      }
      return false;
    };
    wrong_together += is_ever_wrong(together);
    wrong_each += is_ever_wrong(each);
  }
  EXPECT_LE(wrong_together, kLimit);
  EXPECT_GT(wrong_each, kLimit);
}

TEST_F(Learning, ALookThatCannotTellYetSaysNothingOfOtherMetricsEither) {
  std::vector<RunCurves> a(a_.begin(), a_.begin() + 5), b(a_.begin() + 5, a_.end());
  for (std::vector<RunCurves>* side : {&a, &b}) {
    for (RunCurves& run : *side) {
      run.curves["norm"] = run.curves["loss"];
      for (Point& point : run.curves["norm"]) point.y += side == &b ? 10 : 0;
    }
  }
  LearningOptions options;
  EXPECT_EQ(Ask(a, b, options).metrics(1).kind(), LearningVerdict::DIFFERENT);
  options.max_runs = 10;
  EXPECT_EQ(Ask(a, b, options).metrics(1).kind(), LearningVerdict::CANNOT_TELL);
}

TEST_F(Learning, RunsThatCollapseAreNotBetter) {
  const auto accuracies = [&](const std::string& side, int count, double gain) {
    std::vector<RunCurves> runs = Runs(
        side, count, random_, [gain](double x) { return 0.1 + gain * x / 1000; }, 50, 0.01, 0.01);
    for (RunCurves& run : runs) {
      run.curves["accuracy"] = run.curves["loss"];
      run.curves.erase("loss");
    }
    return runs;
  };
  const std::vector<RunCurves> a = accuracies("a", 6, 0.8);
  for (const int num_b : {6, 10})
    EXPECT_EQ(Ask(a, accuracies("b", num_b, -0.1)).metrics(0).kind(), LearningVerdict::WORSE);
}

// An accuracy that is measured once, at the end, does not move, and one of a plateau moves by chance.
TEST_F(Learning, WhereCurvesDoNotMoveTheUserSaysWhatIsBetter) {
  std::vector<RunCurves> sides[2];
  for (const int side : {0, 1}) {
    for (int i = 0; i < 6; ++i)
      sides[side].push_back({absl::StrCat(side, i), "", {{"f1", {{9, 0.9 - 0.2 * side + 0.01 * i}}}}});
  }
  LearningOptions options;
  EXPECT_THAT(std::string(Compare(sides[0], sides[1], "step", options).status().message()),
              HasSubstr("--better has to say it"));
  for (int i = 0; i < 6; ++i)
    sides[0][static_cast<size_t>(i)].curves["f1"].push_back({10, 0.9 + 0.01 * (i % 3)});
  for (RunCurves& run : sides[1]) run.curves["f1"].push_back({10, 0.7});
  EXPECT_THAT(std::string(Compare(sides[0], sides[1], "step", options).status().message()),
              HasSubstr("--better has to say it"));
  options.better = Better::kHigher;
  EXPECT_EQ(Ask(sides[0], sides[1], options).metrics(0).kind(), LearningVerdict::WORSE);
}

TEST_F(Learning, WhatOfTheCurvesIsNotComparedIsNamed) {
  std::vector<RunCurves> b = Runs("b", 10, random_, FallingLoss);
  Curve& curve = b[3].curves["loss"];
  curve.erase(curve.begin(), curve.begin() + 15);
  curve.pop_back();
  const LearningVerdict verdict = Ask(a_, b);
  EXPECT_EQ(verdict.metrics(0).points_size(), 4);
  EXPECT_THAT(verdict.notes(),
              ElementsAre("the runs begin at step 50 to 800: they are compared from the last beginning on",
                          "the runs end at step 950 to 1000: they are compared up to the first end"));
}

TEST_F(Learning, MetricsThatARunLacksAreNamed) {
  std::vector<RunCurves> a = a_, b = a_;
  for (RunCurves& run : a) run.curves["eval_loss"] = run.curves["time"] = run.curves["loss"];
  for (size_t i = 1; i < b.size(); ++i) b[i].curves["eval_loss"] = b[i].curves["loss"];
  const LearningVerdict verdict = Ask(a, b);
  EXPECT_EQ(verdict.metrics(0).name(), "loss");
  EXPECT_THAT(ToText(verdict), HasSubstr("note: not in all runs, and left out: eval_loss\n"));
}

TEST_F(Learning, AMetricThatARunLacksIsAnError) {
  LearningOptions options;
  options.metric = "accuracy";
  EXPECT_THAT(std::string(Compare(a_, a_, "step", options).status().message()),
              HasSubstr("a0: has no metric accuracy; it has loss"));
}

}  // namespace
}  // namespace ott::learning
