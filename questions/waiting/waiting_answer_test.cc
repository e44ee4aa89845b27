#include "ott/questions/waiting/waiting_answer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/questions/waiting/arrival_text.h"

namespace ott::waiting {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ClusterStats Stats(const std::string& arrivals) {
  ClusterStats stats;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(arrivals, &stats)) << arrivals;
  return stats;
}

const char* const kHoldUp =
    R"(name: "sum\n" group: "dp\n" num_intervals: 95 hold_up { rank: 1 host: "node0" seconds_per_iteration: 0.005
       share_of_iteration: 0.25 seconds_low: 0.0048 seconds_high: 0.0052 })";

TEST(WaitingAnswer, NamesWhoHoldsTheOthersUpWithWhatTheyWait) {
  const ClusterStats stats = Stats(absl::StrCat(
      "arrivals { ", kHoldUp,
      " } arrivals { name: \"loss\" num_intervals: 200 num_left: 10 error_bound: 12.3e-6 } arrivals {", R"(
        name: "loss" num_intervals: 90 error_bound: 1e-6
        hold_up { rank: 1 host: "node0" seconds_per_iteration: 0.01 share_of_iteration: 0.5 recent: true }
        hiccups { rank: 3 host: "node1" seconds: 0.15 all_seconds: 0.166 num_hiccups: 3 iterations: [6, 8] }
        hiccups { rank: 0 host: "node0" seconds: 0.1 all_seconds: 0.2 num_hiccups: 1 iterations: 7 }
        hiccups { rank: 0 host: "node0" seconds: 1.6 num_hiccups: 1 iterations: 12 is_pause: true }
        hiccups { rank: 2 host: "node1" seconds: 2.5 num_hiccups: 2 iterations: [12, 50] is_pause: true } })"));
  const Answer answer = AnswerWaiting(stats, true, true);
  EXPECT_EQ(answer.finding(), Answer::BAD);
  EXPECT_EQ(answer.evidence(), stats.SerializeAsString());
  EXPECT_THAT(answer.ranks(), ElementsAre(1, 3, 0));
  EXPECT_THAT(
      answer.sentences(),
      ElementsAre(
          "all wait for rank 1 (node0) at \"sum\\n\" of group dp\\n: 5 ms an iteration (4.8 ms to 5.2 ms), "
          "25.0% of it",
          "since the gather before, all wait for rank 1 (node0) at \"loss\": 10 ms an iteration (0 s to 0 "
          "s), 50.0% of it",
          "rank 3 (node1) caused 150 ms of 166 ms of waiting at \"loss\", in iterations 6, 8 and 1 more",
          "rank 0 (node0) caused 100 ms of 200 ms of waiting at \"loss\", in iteration 7",
          "rank 0 (node0) paused once for 1.6 s before \"loss\", in iteration 12",
          "rank 2 (node1) paused 2 times, for 2.5 s in sum, before \"loss\", in iterations 12, 50"));
  EXPECT_EQ(answer.how_sure(),
            "up to 190 moments at which all waited for the last one; where ranks are alike, the rule is to "
            "name one in 0.25 % of the "
            "runs; two ranks' clocks are compared within 12.3 us");
  EXPECT_THAT(answer.pictures(), ElementsAre("arrivals"));
}

TEST(WaitingAnswer, IsBadForARankThatIsLateAgainAndAgainAndNotForAPause) {
  const std::string hiccups = "hiccups { rank: 1 seconds: 2 num_hiccups: 3 ";
  for (const auto& [arrivals, finding] :
       {std::pair<std::string, Answer::Finding>{kHoldUp, Answer::BAD},
        {"num_intervals: 200 " + hiccups + "}", Answer::BAD},
        {"num_intervals: 200 detectable_share: 0.5 " + hiccups + "is_pause: true }", Answer::GOOD},
        {"num_intervals: 200 detectable_share: 0.51 " + hiccups + "is_pause: true }", Answer::CANNOT_TELL},
        {"num_intervals: 200 " + hiccups + "is_pause: true } " + hiccups + "}", Answer::BAD},
        {"num_intervals: 40 detectable_share: 0.4951", Answer::GOOD},
        {"num_intervals: 39 detectable_share: 0.02", Answer::CANNOT_TELL}}) {
    Answer answer =
        AnswerWaiting(Stats("arrivals { num_intervals: 7 } arrivals { " + arrivals + " }"), true, true);
    EXPECT_EQ(answer.finding(), finding) << arrivals;
    EXPECT_THAT(answer.how_sure(), HasSubstr("one clock, which all ranks read"));
    AddNextOf("run", &answer);
    EXPECT_EQ(answer.next_size(), finding == Answer::BAD ? 1 : 0);
    if (finding == Answer::GOOD) {
      EXPECT_EQ(answer.sentences(0),
                "no rank holds the others up (one that costs 50% of an iteration would have shown)");
    }
  }
  EXPECT_THAT(
      AnswerWaiting(Stats("arrivals { num_intervals: 39 }"), true, true).sentences(),
      ElementsAre(
          "cannot tell who holds the others up; that takes 40 iterations to which all ranks came, and "
          "there are 39"));
  // The one that is missing may be it.
  const Answer answer = AnswerWaiting(
      Stats("missing_ranks: 3 arrivals { num_intervals: 40 detectable_share: 0.1 }"), true, true);
  EXPECT_EQ(answer.finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(answer.sentences(), ElementsAre("cannot tell who holds the others up: nothing from rank 3"));
}

TEST(WaitingAnswer, ClearsNobodyWhereNobodyWouldHaveBeenFound) {
  for (const auto& [arrivals, why] :
       {std::pair<std::string, std::string>{
            "arrivals { name: \"sum\" num_intervals: 80 num_left: 40 } arrivals { num_intervals: 50 }",
            ": ranks do not wait at \"sum\", as 40 of 80 times one left before the last came"},
        {"arrivals { num_intervals: 27 } arrivals { num_intervals: 79 first_iteration: 3 last_iteration: 29 "
         "}",
         "; that takes 40 iterations to which all ranks came, and there are 27"},
        {"arrivals { num_intervals: 50 } arrivals { name: \"sum\" group: \"pp\" num_intervals: 80 num_left: "
         "39 last_iteration: 79 }",
         ": it is not known what would have shown at \"sum\" of group pp, where ranks may do unlike work"},
        {"straggler { rank: 1 host: \"vm\" } arrivals { num_intervals: 80 detectable_share: 0.1 }",
         ": rank 1 (vm) works longer, and how long the others wait for it does not stand out"},
        {"arrivals { num_intervals: 80 detectable_share: 3 } arrivals { num_intervals: 50 detectable_share: "
         "0.601 }",
         "; only one that costs 61% of an iteration would have shown"}}) {
    const Answer answer = AnswerWaiting(Stats(arrivals), true, true);
    EXPECT_EQ(answer.finding(), Answer::CANNOT_TELL);
    EXPECT_THAT(answer.sentences(), ElementsAre("cannot tell who holds the others up" + why));
  }
  EXPECT_THAT(
      AnswerWaiting(
          Stats("arrivals { num_intervals: 80 } arrivals { num_intervals: 50 detectable_share: 0.1 }"), true,
          true)
          .sentences(),
      ElementsAre("no rank holds the others up (one that costs 10% of an iteration would have shown)"));
  // At the collective that tells less, no rank was late by more than it was.
  for (const auto& [caused, shown] : {std::pair(0.05, "10%"), {0.15, "15%"}, {0.9, "30%"}}) {
    const ClusterStats stats =
        Stats(absl::StrCat("arrivals { num_intervals: 50 detectable_share: 0.1 most_caused_share: 0.9 } "
                           "arrivals { num_intervals: 50 detectable_share: 0.3 most_caused_share: ",
                           caused, " }"));
    EXPECT_THAT(AnswerWaiting(stats, true, true).sentences(0), HasSubstr(absl::StrCat("costs ", shown)));
  }
}

TEST(WaitingAnswer, SaysWhatIsMissingWhereNothingWasMeasured) {
  for (const bool was_gathered : {true, false}) {
    for (const auto& stats : {std::optional<ClusterStats>(), std::optional<ClusterStats>(ClusterStats())}) {
      Answer answer = AnswerWaiting(stats, false, was_gathered);
      EXPECT_EQ(answer.finding(), Answer::NOT_ASKED);
      EXPECT_THAT(answer.sentences(0), HasSubstr("Not recorded: no measurement"));
      answer = AnswerWaiting(stats, true, was_gathered);
      EXPECT_EQ(answer.finding(), Answer::CANNOT_TELL);
      EXPECT_THAT(answer.sentences(0),
                  HasSubstr(was_gathered ? "no iteration was measured" : "nothing was gathered"));
    }
  }
}

TEST(FormatArrivals, IsATableOfThePlaces) {
  EXPECT_EQ(FormatArrivals(ClusterStats()), "");
  EXPECT_EQ(FormatArrivals(Stats(R"(
      arrivals { name: "allreduce" group: "dp" num_ranks: 4 first_iteration: 5 last_iteration: 99 num_intervals: 95
        mean_wait: 0.0051 max_wait: 0.0079 error_bound: 12.3e-6 num_incomplete: 1 num_left: 2
        last { rank: 1 host: "node0" num_intervals: 90 after_next: 0.005 }
        last { rank: 3 host: "node1" num_intervals: 4 after_next: 1e-4 }
        last { rank: 2 host: "node1" num_intervals: 1 } }
      arrivals { name: "loss" num_ranks: 2 error_bound: 2e-6 })")),
            "arrival at               ranks  iterations  wait/iteration  longest  last\n"
            "  allreduce of group dp      4        5-99          5.1 ms   7.9 ms  rank 1 (node0) in 90 of "
            "95, 5 ms after "
            "the next; rank 3 (node1) in 4 of 95, 100 us after the next; 1 times not all ranks came; 2 times "
            "one left "
            "before the last came\n"
            "  loss                       2         0-0             0 s      0 s\n"
            "arrivals are by aligned clocks: two ranks' are compared within 12.3 us\n");
  EXPECT_THAT(FormatArrivals(Stats("arrivals { name: \"loss\" num_ranks: 4 }")),
              HasSubstr("arrivals are by one clock, which all ranks read\n"));
}

}  // namespace
}  // namespace ott::waiting
