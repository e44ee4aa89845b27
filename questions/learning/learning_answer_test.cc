#include "ott/questions/learning/learning_answer.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::learning {
namespace {

using ::testing::ElementsAre;
using Event = LearningVerdict::Event;

void Set(double value, double low, double high, LearningVerdict::Interval* interval) {
  interval->set_value(value);
  interval->set_low(low);
  interval->set_high(high);
}

// Ten runs a side, whose loss is worse from step 2 on.
LearningVerdict WorseLoss() {
  LearningVerdict verdict;
  verdict.set_x_name("step");
  verdict.set_num_a(10);
  verdict.set_num_b(10);
  verdict.set_error(0.01);
  LearningVerdict::Metric& metric = *verdict.add_metrics();
  metric.set_name("loss");
  metric.set_kind(LearningVerdict::WORSE);
  metric.set_level(0.01);
  metric.set_ratio(1.25);
  metric.set_differs_from(2);
  metric.set_differs_to(3);
  Set(0.05, 0.02, 0.081, metric.mutable_share_lost());
  for (int x = 1; x <= 3; ++x) {
    LearningVerdict::Point& point = *metric.add_points();
    point.set_x(x);
    point.set_margin(0.1 * x);
    Set(4.0 / x, 0, 0, point.mutable_a());
    Set(5.0 / x, 0, 0, point.mutable_b());
    // The second stands out most, before the third.
    const double half = x == 1 ? 0.5 : 0.1;
    Set(1, 1 - half, 1 + half, point.mutable_difference());
  }
  return verdict;
}

TEST(AnswerLearning, SaysHowMuchWhereAndWhy) {
  const std::string at = "; at 2 by +1 (0.9 to 1.1)";
  using Change = std::function<void(LearningVerdict&, LearningVerdict::Metric&)>;
  const auto same = [](Answer::Finding finding) { return finding; };
  struct Case {
    Change change;
    Answer::Finding finding;
    std::string first;
  };
  const auto cannot_tell = [](LearningVerdict&, LearningVerdict::Metric& metric) {
    metric.set_kind(LearningVerdict::CANNOT_TELL);
  };
  const std::string untold = "cannot tell in loss after 10 of A and 10 of B";
  const std::string lost =
      ": B loses 5.0 % of the steps (99 %: 2.0 to 8.1 %), and what lies beyond 0.1 to 0.3 (half of what A's "
      "10 runs span) is not excluded";
  const std::string larger = "; more runs than can be had would tell, or a larger --margin";
  for (const auto& [change, finding, first] : std::vector<Case>{
           {[](auto&, auto&) {}, same(Answer::BAD),
            "B is worse in loss: it loses 5.0 % of the steps (99 %: 2.0 to 8.1 %), from step 2 on" + at},
           {[](auto&, auto&metric) {
              metric.set_differs_to(2);
              metric.mutable_share_lost()->set_low(0);
            },
            Answer::BAD, "B is worse in loss, from step 2 to 2" + at},
           {[](auto&, auto&metric) {
              metric.clear_differs_from();
              metric.clear_share_lost();
            },
            Answer::BAD, "B is worse in loss, over the whole curve; no point by itself tells" + at},
           {[](auto&, auto&metric) {
              metric.set_kind(LearningVerdict::BETTER);
              Set(-0.05, -0.081, -0.02, metric.mutable_share_lost());
            },
            Answer::GOOD,
            "B is better in loss: it saves 5.0 % of the steps (99 %: 2.0 to 8.1 %), from step 2 on" + at},
           {[](auto&, auto&metric) { metric.set_kind(LearningVerdict::BETTER); }, Answer::GOOD,
            "B is better in loss, from step 2 on" + at},
           {[](auto&, auto&metric) { metric.set_kind(LearningVerdict::AS_GOOD); }, Answer::GOOD,
            "B is as good in loss: at none of 3 points is it off by more than 0.1 to 0.3 (half of what A's "
            "10 runs span) (99 %)"},
           {[](auto&verdict, auto&metric) {
              metric.set_kind(LearningVerdict::AS_GOOD);
              verdict.set_margin("2 %");
            },
            Answer::GOOD,
            "B is as good in loss: at none of 3 points is it off by more than the margin of 2 % (99 %)"},
           {[](auto&verdict, auto&metric) {
              metric.set_kind(LearningVerdict::AS_GOOD);
              verdict.set_num_a(1);
              verdict.set_num_b(1);
            },
            Answer::GOOD, "B is as good in loss: it is the same to the last bit at all 3 points"},
           {[](auto&, auto&metric) { metric.set_kind(LearningVerdict::MIXED); }, Answer::CANNOT_TELL,
            "cannot tell: B's curve of loss has another shape than A's, and is not better or worse as a "
            "whole"},
           {cannot_tell, Answer::CANNOT_TELL, untold + lost + larger},
           {[&](auto&verdict, auto&metric) {
              cannot_tell(verdict, metric);
              metric.set_runs_needed(14);
              for (auto& point : *metric.mutable_points()) point.set_margin(0.25);
            },
            Answer::CANNOT_TELL,
            untold + ": B loses 5.0 % of the steps (99 %: 2.0 to 8.1 %), and what lies beyond 0.25 (half of "
                     "what A's 10 runs span) is not excluded; some 14 runs a side would tell"},
           {[&](auto&verdict, auto&metric) {
              cannot_tell(verdict, metric);
              metric.clear_share_lost();
            },
            Answer::CANNOT_TELL, untold + larger},
           {[&](auto&verdict, auto&metric) {
              cannot_tell(verdict, metric);
              verdict.add_events()->set_kind(Event::DIVERGED);
              verdict.mutable_events(0)->set_is_b(true);
            },
            Answer::CANNOT_TELL, untold + ": with a run that failed, B is never as good"},
           {[&](auto&verdict, auto&metric) {
              cannot_tell(verdict, metric);
              verdict.set_num_b(1);
            },
            Answer::CANNOT_TELL,
            "cannot tell in loss after 10 of A and 1 of B: the one run lies inside of the band of the "
            "others, which excludes no difference" +
                larger},
           {[&](auto&verdict, auto&metric) {
              cannot_tell(verdict, metric);
              verdict.set_num_a(1);
              verdict.set_num_b(1);
            },
            Answer::CANNOT_TELL,
            "cannot tell in loss after 1 of A and 1 of B: one run a side says nothing about seeds; 5 runs a "
            "side may"}}) {
    LearningVerdict verdict = WorseLoss();
    change(verdict, *verdict.mutable_metrics(0));
    const Answer answer = AnswerLearning(verdict);
    EXPECT_EQ(answer.evidence(), verdict.SerializeAsString());
    EXPECT_EQ(answer.sentences(0), first);
    EXPECT_EQ(answer.finding(), finding) << first;
  }
}

TEST(AnswerLearning, EventsOtherMetricsAndNotesFollow) {
  LearningVerdict verdict = WorseLoss();
  Set(1.1, 1.05, 1.15, verdict.mutable_metrics(0)->mutable_stop_ratio());
  for (const LearningVerdict::Kind kind : {LearningVerdict::DIFFERENT, LearningVerdict::AS_GOOD}) {
    LearningVerdict::Metric& other = *verdict.add_metrics() = verdict.metrics(0);
    other.set_name(absl::StrCat("norm", verdict.metrics_size()));
    other.set_kind(kind);
    other.set_ratio(0.5);
  }
  LearningVerdict::Metric& of_zeros = *verdict.add_metrics() = verdict.metrics(1);
  of_zeros.set_name("zeros");
  of_zeros.clear_ratio();
  for (const Event::Kind kind :
       {Event::NOT_FINITE, Event::ONCE_NOT_FINITE, Event::DIVERGED, Event::CUT_SHORT}) {
    Event& event = *verdict.add_events();
    event.set_kind(kind);
    event.set_run(absl::StrCat("run", verdict.events_size()));
    event.set_is_b(verdict.events_size() % 2 == 0);
    event.set_x(7);
  }
  verdict.set_first_difference("they differ first in step 1");
  verdict.add_notes("a note");
  verdict.set_next("ott next");
  const Answer answer = AnswerLearning(verdict);
  const std::vector<std::string> further = {
      "B reaches the target at 1.100 times A's step (1.050 to 1.150)",
      "norm2 differs: it is 0.50 times A's",
      "zeros differs: A's is 0",
      "A: run1 is not finite from step 7 on",
      "B: run2 is not finite at step 7, and finite again",
      "A: run3 ends worse than it began",
      "B: run4 ends at step 7, before half of what the others do, and is left out",
      "they differ first in step 1",
      "note: a note"};
  ASSERT_EQ(answer.sentences_size(), static_cast<int>(further.size()) + 1);
  std::string lines;
  for (size_t i = 0; i < further.size(); ++i) {
    EXPECT_EQ(answer.sentences(static_cast<int>(i) + 1), further[i]);
    absl::StrAppend(&lines, further[i], "\n");
  }
  EXPECT_EQ(
      answer.how_sure(),
      "10 runs of A and 10 of B; worse or better is wrong in at most 1 % of such comparisons, whatever the "
      "curves look like");
  EXPECT_THAT(answer.next(), ElementsAre("ott next"));
  EXPECT_EQ(ToText(verdict), absl::StrCat(answer.sentences(0), "\n",
                                          "metric  verdict  last A  last B  B / A\n"
                                          "loss      worse  1.3333  1.6667  1.250\n"
                                          "norm2   DIFFERS  1.3333  1.6667  0.500\n"
                                          "norm3   as good  1.3333  1.6667  0.500\n"
                                          "zeros   DIFFERS  1.3333  1.6667     na\n",
                                          lines, "next: ott next\n"));
  verdict.set_num_b(1);
  EXPECT_EQ(AnswerLearning(verdict).how_sure(),
            "10 runs of A and 1 of B; worse or better is wrong in at most 1 % of such comparisons, if seeds "
            "spread as Student's t has it");
}

// A run that failed is bad news if only B's did, and another metric that differs is where loss is as good.
TEST(AnswerLearning, OtherBadNewsIsBadUnlessLossIsBetter) {
  const auto finding = [](LearningVerdict::Kind kind, int num_b, bool a_failed, bool b_failed,
                          bool other_differs, Event::Kind of_b = Event::NOT_FINITE) {
    LearningVerdict verdict = WorseLoss();
    verdict.set_num_b(num_b);
    verdict.mutable_metrics(0)->set_kind(kind);
    for (const bool is_b : {false, true}) {
      Event& event = *verdict.add_events();
      event.set_is_b(is_b);
      event.set_kind(!(is_b ? b_failed : a_failed) ? Event::ONCE_NOT_FINITE : is_b ? of_b : Event::DIVERGED);
    }
    if (other_differs) verdict.add_metrics()->set_kind(LearningVerdict::DIFFERENT);
    return AnswerLearning(verdict).finding();
  };
  EXPECT_EQ(finding(LearningVerdict::CANNOT_TELL, 1, false, true, false), Answer::BAD);
  EXPECT_EQ(finding(LearningVerdict::CANNOT_TELL, 1, false, true, false, Event::DIVERGED),
            Answer::CANNOT_TELL);
  EXPECT_EQ(finding(LearningVerdict::CANNOT_TELL, 1, true, true, false), Answer::CANNOT_TELL);
  EXPECT_EQ(finding(LearningVerdict::CANNOT_TELL, 1, true, false, false), Answer::CANNOT_TELL);
  EXPECT_EQ(finding(LearningVerdict::CANNOT_TELL, 2, false, true, false), Answer::CANNOT_TELL);
  EXPECT_EQ(finding(LearningVerdict::AS_GOOD, 2, false, false, true), Answer::BAD);
  EXPECT_EQ(finding(LearningVerdict::BETTER, 2, false, false, true), Answer::GOOD);
  EXPECT_EQ(finding(LearningVerdict::CANNOT_TELL, 2, false, false, true), Answer::BAD);
}

}  // namespace
}  // namespace ott::learning
