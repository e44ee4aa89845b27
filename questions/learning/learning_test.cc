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

using ::testing::HasSubstr;
using Kind = LearningVerdict::Kind;

double FallingLoss(double x) { return 1 + 3 * std::exp(-x / 300); }

// Runs of a loss over 1000 steps whose seeds differ by 0.02, for the whole run and from point to point.
std::vector<RunCurves> Runs(const std::string& side, int count, std::mt19937_64& random,
                            const std::function<double(double)>& loss, double every = 50) {
  std::normal_distribution<double> normal(0, 0.02);
  std::vector<RunCurves> runs;
  for (int i = 0; i < count; ++i) {
    RunCurves run{absl::StrCat(side, i), "", {}};
    const double seed = normal(random);
    for (double x = every; x <= 1000; x += every)
      run.curves["loss"].push_back({x, loss(x) + seed + normal(random)});
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

TEST_F(Learning, AMetricThatRisesIsWorseWhereItIsLower) {
  const auto accuracy = [](double x) { return 5 - FallingLoss(x); };
  LearningOptions options;
  options.metric = "accuracy";
  std::vector<RunCurves> a = Runs("a", 10, random_, accuracy);
  std::vector<RunCurves> b = Runs("b", 10, random_, [&](double x) { return accuracy(0.9 * x); });
  for (std::vector<RunCurves>* side : {&a, &b}) {
    for (RunCurves& run : *side) run.curves["accuracy"] = std::move(run.curves["loss"]);
  }
  EXPECT_EQ(Ask(a, b, options).metrics(0).kind(), LearningVerdict::WORSE);
  options.better = Better::kLower;
  EXPECT_EQ(Ask(a, b, options).metrics(0).kind(), LearningVerdict::BETTER);
}

// Runs whose points vary as one: a part of the curve that leaves the others is seen though the runs spread
// more.
std::vector<RunCurves> RunsOfLevels(const std::string& side, int count, std::mt19937_64& random,
                                    const std::function<double(double)>& loss) {
  std::normal_distribution<double> level(0, 0.1), noise(0, 0.005);
  std::vector<RunCurves> runs;
  for (int i = 0; i < count; ++i) {
    RunCurves run{absl::StrCat(side, i), "", {}};
    const double seed = level(random);
    for (double x = 100; x <= 1000; x += 100)
      run.curves["loss"].push_back({x, loss(x) + seed + noise(random)});
    runs.push_back(std::move(run));
  }
  return runs;
}

TEST_F(Learning, ABumpBelowTheSpreadOfTheRunsIsFoundAndHasADirection) {
  const auto bump = [](double x) { return FallingLoss(x) + (x > 350 && x < 650 ? 0.08 : 0); };
  int worse = 0;
  for (int trial = 0; trial < 10; ++trial) {
    const Kind kind = Ask(RunsOfLevels("a", 10, random_, FallingLoss), RunsOfLevels("b", 10, random_, bump))
                          .metrics(0)
                          .kind();
    EXPECT_NE(kind, LearningVerdict::BETTER);
    worse += kind == LearningVerdict::WORSE;
  }
  EXPECT_GE(worse, 7);
}

// That the end is worse, or that the beginning is better: without the level nobody can tell.
TEST_F(Learning, APartAtAnEndOfTheCurveHasNoDirectionOfItsOwn) {
  const auto later = [](double x) { return FallingLoss(x) + (x > 550 ? 0.03 : -0.03); };
  const LearningVerdict verdict =
      Ask(RunsOfLevels("a", 10, random_, FallingLoss), RunsOfLevels("b", 10, random_, later));
  EXPECT_EQ(verdict.metrics(0).kind(), LearningVerdict::MIXED);
  EXPECT_EQ(AnswerLearning(verdict).finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(ToText(verdict), HasSubstr("another shape than A's"));
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

TEST_F(Learning, ASetIsAsGoodWithinAMarginAndNotBeyondIt) {
  const std::vector<RunCurves> b = Runs("b", 10, random_, FallingLoss);
  LearningOptions options;
  options.margin = 0.1;
  const LearningVerdict verdict = Ask(a_, b, options);
  EXPECT_EQ(verdict.metrics(0).kind(), LearningVerdict::AS_GOOD);
  EXPECT_EQ(AnswerLearning(verdict).finding(), Answer::GOOD);
  options.margin = 0.001;
  EXPECT_EQ(Ask(a_, b, options).metrics(0).kind(), LearningVerdict::CANNOT_TELL);
  EXPECT_GT(Ask(a_, b, options).metrics(0).runs_needed(), 10);
  options.margin = std::nullopt;
  options.margin_share = 0.1;
  EXPECT_EQ(Ask(a_, b, options).metrics(0).kind(), LearningVerdict::AS_GOOD);
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

TEST_F(Learning, OneRunOfEachSideIsAsGoodOnlyIfItIsTheSame) {
  RunCurves b = a_[0];
  b.name = "b";
  EXPECT_EQ(Ask({a_[0]}, {b}).metrics(0).kind(), LearningVerdict::AS_GOOD);
  b.curves["loss"].back().y += 1e-6;
  EXPECT_EQ(Ask({a_[0]}, {b}).metrics(0).kind(), LearningVerdict::CANNOT_TELL);
  b.curves["loss"].back().y = NAN;
  EXPECT_EQ(Ask({b}, {b}).metrics(0).kind(), LearningVerdict::CANNOT_TELL) << "as both have failed";
}

TEST_F(Learning, ARunThatIsNotFiniteIsNeverAsGood) {
  std::vector<RunCurves> b = Runs("b", 10, random_, FallingLoss);
  for (size_t i = 10; i < 20; ++i) b[3].curves["loss"][i].y = NAN;
  LearningOptions options;
  options.margin = 0.5;
  const LearningVerdict verdict = Ask(a_, b, options);
  ASSERT_EQ(verdict.events_size(), 1);
  EXPECT_EQ(verdict.events(0).kind(), LearningVerdict::Event::NOT_FINITE);
  EXPECT_EQ(verdict.events(0).x(), 550);
  EXPECT_NE(verdict.metrics(0).kind(), LearningVerdict::AS_GOOD);
  EXPECT_THAT(ToText(verdict),
              HasSubstr("after 10 of A and 10 of B: with a run that failed, B is never as good\n"));
  EXPECT_THAT(ToText(verdict), HasSubstr("B: b3 is not finite from step 550 on"));
  EXPECT_EQ(AnswerLearning(Ask(a_, {b[3]})).finding(), Answer::BAD);
}

TEST_F(Learning, OtherPointsAndLengthsDoNotMatter) {
  EXPECT_EQ(Ask(a_, Runs("b", 10, random_, FallingLoss, 7)).metrics(0).kind(), LearningVerdict::CANNOT_TELL);
  std::vector<RunCurves> shorter = Runs(
      "b", 10, random_, [](double x) { return FallingLoss(0.85 * x); }, 3);
  for (RunCurves& run : shorter) run.curves["loss"].resize(250);
  const LearningVerdict verdict = Ask(a_, shorter);
  EXPECT_EQ(verdict.metrics(0).kind(), LearningVerdict::WORSE);
  EXPECT_THAT(ToText(verdict), HasSubstr("note: the runs end at step 750 to 1000"));
}

TEST_F(Learning, RunsThatStopAtATargetTellByWhereTheyStop) {
  const auto stopped = [&](const std::string& side, double slower) {
    std::vector<RunCurves> runs = Runs(
        side, 10, random_, [&](double x) { return FallingLoss(x / slower); }, 10);
    for (RunCurves& run : runs) {
      Curve& curve = run.curves["loss"];
      size_t end = 0;
      while (curve[end].y >= 1.5) ++end;
      curve.resize(end + 1);
    }
    return runs;
  };
  const LearningVerdict verdict = Ask(stopped("a", 1), stopped("b", 1.2));
  EXPECT_EQ(verdict.metrics(0).kind(), LearningVerdict::WORSE);
  ASSERT_TRUE(verdict.metrics(0).has_stop_ratio());
  EXPECT_NEAR(verdict.metrics(0).stop_ratio().value(), 1.2, 0.1);
  EXPECT_THAT(ToText(verdict), HasSubstr("each at the same target"));
}

TEST_F(Learning, TheSameLossWithTwiceTheGradientNormIsAFinding) {
  std::vector<RunCurves> a = a_, b = Runs("b", 10, random_, FallingLoss);
  std::normal_distribution<double> normal(1, 0.05);
  for (RunCurves& run : a) run.curves["grad_norm"] = {{100, normal(random_)}, {500, normal(random_)}};
  for (RunCurves& run : b) run.curves["grad_norm"] = {{100, 2 * normal(random_)}, {500, 2 * normal(random_)}};
  for (std::vector<RunCurves>* side : {&a, &b}) {
    for (RunCurves& run : *side) run.curves["param_norm"] = {{100, normal(random_)}, {500, normal(random_)}};
  }
  LearningOptions options;
  options.margin = 0.1;
  const LearningVerdict verdict = Ask(a, b, options);
  EXPECT_EQ(verdict.metrics(0).kind(), LearningVerdict::AS_GOOD);
  ASSERT_EQ(verdict.metrics_size(), 3);
  EXPECT_EQ(verdict.metrics(1).kind(), LearningVerdict::DIFFERENT);
  EXPECT_NEAR(verdict.metrics(1).ratio(), 2, 0.1);
  EXPECT_EQ(verdict.metrics(2).kind(), LearningVerdict::CANNOT_TELL);
  EXPECT_EQ(AnswerLearning(verdict).finding(), Answer::BAD);
  EXPECT_THAT(ToText(verdict), HasSubstr("grad_norm differs"));
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

TEST_F(Learning, AnotherLearningRateIsNoted) {
  std::vector<RunCurves> a = a_, b = Runs("b", 10, random_, FallingLoss);
  for (RunCurves& run : a) run.curves["lr"] = {{100, 1e-3}, {500, 1e-4}};
  for (RunCurves& run : b) run.curves["lr"] = {{100, 1e-3}, {500, 2e-4}};
  const LearningVerdict verdict = Ask(a, b);
  EXPECT_THAT(ToText(verdict), HasSubstr("note: lr is 0.0001 for A and 0.0002 for B at step 500"));
  EXPECT_EQ(verdict.metrics_size(), 1);
}

TEST_F(Learning, AMetricThatARunLacksIsAnError) {
  LearningOptions options;
  options.metric = "accuracy";
  EXPECT_THAT(std::string(Compare(a_, a_, "step", options).status().message()),
              HasSubstr("a0: has no metric accuracy; it has loss"));
}

}  // namespace
}  // namespace ott::learning
