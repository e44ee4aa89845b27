#include "ott/questions/hang/diagnosis.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job_for_test.h"
#include "ott/questions/hang/hang_report.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Process = RankState::Process;
using Progress = JobOperation::Progress;

constexpr int64_t kSecond = JobForTest::kSecond;

HangVerdict Diagnose(const JobForTest& test, double after_seconds = 30) {
  return DiagnoseHang(test.job, {after_seconds});
}

// Ranks 0, 1 and 2, 3 train apart, under a name that was declared for nobody: it is taken for all of them.
JobForTest TwoGroupsUndeclared(int64_t done_by_first, int64_t done_by_second) {
  JobForTest test(4);
  const int world = test.Group("world", {0, 1, 2, 3});
  test.job.groups[world].is_declared = false;
  for (int rank = 0; rank < 4; ++rank) {
    const int64_t done = rank < 2 ? done_by_first : done_by_second;
    const int64_t first = std::max<int64_t>(1, done - 63);
    for (int64_t i = first; i <= done; ++i) {
      test.Call(rank, world, i, "allreduce", Progress::kCompleted).iteration =
          done == 100 ? (i + 1) / 2 : i - (done - 50);
    }
    test.job.ranks[rank].iteration = 51;
  }
  return test;
}

TEST(DiagnoseHang, WhatOthersCompletedWithoutARankIsOfAnotherGroup) {
  for (const bool others_stand : {false, true}) {
    JobForTest test = TwoGroupsUndeclared(57, 50);
    test.Call(3, 0, 51, "allreduce");
    if (others_stand) {
      test.Call(0, 0, 58, "allreduce");
      test.Call(1, 0, 58, "allreduce");
    }
    const HangVerdict verdict = Diagnose(test);
    EXPECT_THAT(verdict.culprits(), ElementsAre(2)) << verdict.verdict();
    EXPECT_THAT(verdict.verdict(),
                StartsWith("rank 2 never came to allreduce #51 of group world (iteration 103), "
                           "where rank 3 has waited for 50 s"));
    EXPECT_THAT(verdict.notes(),
                ElementsAre(AllOf(HasSubstr("rank 0 completed allreduce #57"), HasSubstr("without rank 2"),
                                  HasSubstr("collective_groups"))));
    // Nor do calls differ that are of different groups.
    test.job.ranks[3].process = Process::kDead;
    test.job.ranks[3].operations.back().name = test.job.Name("mean");
    EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2));
  }
}

TEST(DiagnoseHang, WhoCallsANameMoreOftenUsesItForAnotherCollective) {
  // Ranks 0 and 1 reduce among themselves as well: their #100 is of iteration 50, as the others' #50 is.
  for (const int stuck : {0, 2}) {
    JobForTest test = TwoGroupsUndeclared(100, 50);
    if (stuck == 2) test.job.ranks[3].operations.clear();
    const std::string others = stuck == 2 ? "rank 2 calls it once" : "ranks 2, 3 call it once";
    for (int rank = 0; rank < 4; ++rank) {
      if (rank != stuck) test.Call(rank, 0, rank < 2 ? 101 : 51, "allreduce").iteration = 51;
    }
    const HangVerdict verdict = Diagnose(test);
    EXPECT_THAT(verdict.culprits(), ElementsAre(stuck)) << verdict.verdict();
    EXPECT_THAT(verdict.notes(),
                ElementsAre(HasSubstr("the name allreduce is used for unlike collectives: ranks 0, 1 "
                                      "call it 2 times, " +
                                      others + " an iteration")));
  }
}

TEST(DiagnoseHang, WhereNumbersDoNotCountTheSameNobodyIsSaidToHaveCome) {
  JobForTest test = TwoGroupsUndeclared(100, 50);
  test.Call(2, 0, 51, "allreduce").iteration = 51;
  test.Call(3, 0, 51, "allreduce").iteration = 51;
  test.job.ranks[0].place = test.job.ranks[1].place = "forward";
  const std::string cannot_tell =
      "cannot tell: ranks 2, 3 wait in allreduce #51 of group world (iteration 51), and numbers do not tell "
      "who is missing, as they do not count the same on all ranks";
  const std::string of_suspects[] = {"; ranks 0, 1 wait for nobody", "; rank 1 is in \"forward\" since 100 s",
                                     ""};
  const JobState whole = test.job;
  const auto exclude = [&](int how, RankState* rank) {
    if (how == 0) rank->problem = "no recorder";
    if (how == 1) rank->last_event_ns = 999 * kSecond;
    if (how == 2) rank->finished = true;
  };
  for (int how = 0; how < 3; ++how) {
    for (int num_excluded = 0; num_excluded <= 2; ++num_excluded) {
      test.job = whole;
      for (int rank = 0; rank < num_excluded; ++rank) exclude(how, &test.job.ranks[rank]);
      const HangVerdict verdict = Diagnose(test);
      EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
      EXPECT_EQ(verdict.suspects_size(), 2 - num_excluded);
      EXPECT_EQ(verdict.verdict(), cannot_tell + of_suspects[num_excluded]);
    }
  }
}

TEST(DiagnoseHang, AWaitCountsFromItsLimitOn) {
  JobForTest test(4);
  test.Call(0, test.Group("dp0", {0, 1}), 1, "allreduce");
  test.Call(2, test.Group("dp1", {2, 3}), 1, "allreduce").entered_ns = 960 * kSecond;
  test.job.ranks[1].last_event_ns = 950 * kSecond;
  EXPECT_THAT(Diagnose(test, 50).culprits(), ElementsAre(1));
  EXPECT_EQ(Diagnose(test, 50).causes(0).place_seconds(), 100);
  EXPECT_THAT(Diagnose(test, 51).verdict(),
              StartsWith("not hanging: no rank has waited for more than 50 s (limit 51 s)"));
  // A rank that stands in two stands in the one that it came to first.
  test.Call(0, 0, 2, "allreduce").entered_ns = 990 * kSecond;
  EXPECT_THAT(Diagnose(test, 50).culprits(), ElementsAre(1));
  test.job.ranks[1].last_event_ns += 1;
  EXPECT_THAT(Diagnose(test, 50).verdict(), EndsWith("(iteration 103); it is in \"data\" since 100 s"));
}

TEST(DiagnoseHang, AJobThatWasEndedFromOutsideHangsOnlyIfRanksWaitedBefore) {
  const std::string ended = "somebody ended the job by SIGTERM at 1970-01-01T00:16:39Z";
  for (int num_finished = 0; num_finished <= 2; ++num_finished) {
    JobForTest test(2);
    test.job.notes = {"a note"};
    const int world = test.Group("dp0", {0, 1});
    for (int rank = 0; rank < 2; ++rank) {
      test.job.ranks[rank].process = Process::kUnknown;
      test.job.ranks[rank].last_event_ns = test.job.ranks[rank].terminated_ns = 999 * kSecond;
      test.job.ranks[rank].finished = rank < num_finished;
    }
    const HangVerdict verdict = Diagnose(test);
    EXPECT_EQ(verdict.verdict(), num_finished == 2
                                     ? "not hanging: all ranks have finished"
                                     : "not hanging: " + ended + ", and no rank had waited for long");
    EXPECT_THAT(verdict.notes(), ElementsAre("a note"));
    test.job.ranks[0].last_event_ns = 900 * kSecond;
    test.job.ranks[1].finished = false;
    test.Call(1, world, 1, "allreduce");
    EXPECT_THAT(Diagnose(test).notes(), ElementsAre(ended, "a note"));
  }
}

TEST(DiagnoseHang, OfTwoWhoTakeGroupsInOppositeOrderTheOneThatChangedItIsNamed) {
  for (const bool first_changed : {false, true}) {
    for (const bool second_changed : {false, true}) {
      JobForTest test(2);
      const int groups[] = {test.Group("a", {0, 1}), test.Group("b", {0, 1})};
      for (int rank = 0; rank < 2; ++rank) {
        const bool changed = rank == 0 ? first_changed : second_changed;
        for (const int group : groups) {
          const bool came_first = (group == groups[rank]) != changed;
          test.Call(rank, group, 8, "allreduce", Progress::kCompleted).entered_ns =
              (came_first ? 10 : 11) * kSecond;
        }
        test.Call(rank, groups[rank], 9, "allreduce");
      }
      std::vector<int> expected;
      if (first_changed != second_changed) expected = {first_changed ? 0 : 1};
      EXPECT_THAT(Diagnose(test).culprits(), ElementsAreArray(expected));
      // Nothing is known of the order before if one of the two is not.
      for (RankState& rank : test.job.ranks) rank.operations.erase(rank.operations.begin() + 1);
      EXPECT_EQ(Diagnose(test).answer(), HangVerdict::HANGING);
      EXPECT_THAT(Diagnose(test).culprits(), IsEmpty());
    }
  }
}

TEST(DiagnoseHang, UnlikeUseOfANameIsNoShiftOfIterations) {
  JobForTest test(3);
  const int world = test.Group("world", {0, 1, 2});
  for (int rank = 0; rank < 3; ++rank) {
    for (int i = 0; i < 20; ++i)
      test.Call(rank, world, i + 1, "sum", Progress::kCompleted).iteration = rank == 0 ? i : i / 2;
    if (rank != 1) test.Call(rank, world, 21, "sum").iteration = rank == 0 ? 20 : 10;
  }
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(1));
  EXPECT_THAT(Diagnose(test).notes(),
              ElementsAre(HasSubstr("ranks 1, 2 call it 2 times, rank 0 calls it once")));
}

TEST(DiagnoseHang, EachRankHasARowOfItsState) {
  JobForTest test(8);
  const int world = test.Group("dp0", {0, 1, 2, 3, 4, 5, 6, 7});
  test.Call(0, world, 1, "allreduce");
  std::vector<RankState>& ranks = test.job.ranks;
  ranks[2].finished = true;
  ranks[3].left = true;
  ranks[4].process = Process::kDead;
  ranks[5].process = Process::kStopped;
  ranks[6].process = Process::kSilent;
  ranks[7] = RankState();
  for (int rank = 0; rank < 7; ++rank) {
    ranks[rank].iteration = 100 + rank;
    ranks[rank].last_completed = absl::StrCat("sum #", rank);
    ranks[rank].host = "node1";
  }
  ranks[6].place = "";
  ranks[6].last_event_ns = 998 * kSecond;
  EXPECT_EQ("\n" + FormatHangRanks(Diagnose(test)), R"(
note: others wait for rank 7, of which nothing is known: no recorder
    ranks   host     state  iteration  last completed                                         in    for
>  rank 1  node1     works        101          sum #1                                       data  100 s
>  rank 3  node1      left        103          sum #3                                       data  100 s
>  rank 4  node1      dead        104          sum #4                                       data  100 s
>  rank 5  node1   stopped        105          sum #5                                       data  100 s
>  rank 6  node1    silent        106          sum #6                                               2 s
>  rank 2  node1  finished        102          sum #2                                       data  100 s
   rank 7          unknown
   rank 0  node1     waits        100          sum #0  allreduce #1 of group dp0 (iteration 103)   50 s
)");
}

TEST(HangReport, NamesAreEscapedOnce) {
  JobForTest test(3);
  const int world = test.Group("dp\n", {0, 1, 2});
  for (const int rank : {0, 1}) test.Call(rank, world, 7, "sum\n");
  test.job.ranks[0].process = Process::kDead;
  test.job.ranks[0].host = "node\n";
  const HangVerdict verdict = Diagnose(test);
  ASSERT_THAT(verdict.notes(), ElementsAre(HasSubstr("may be a consequence")));
  const std::string text = FormatHangVerdict(verdict);
  EXPECT_THAT(text, StartsWith("rank 2 never came to sum\\n #7 of group dp\\n (iteration 103)"));
  EXPECT_THAT(text, HasSubstr("note: rank 0 (node\\n) is gone"));
  EXPECT_THAT(text, HasSubstr("  sum\\n #7 of group dp\\n (iteration 103)   50 s\n"));
}

TEST(HangReport, ThousandsOfRanksAreARowForEachPlace) {
  JobForTest test(4096);
  std::vector<int> all;
  for (int rank = 0; rank < 4096; ++rank) all.push_back(rank);
  const int world = test.Group("world", all);
  for (int rank = 0; rank < 4096; ++rank) {
    if (rank != 77)
      test.Call(rank, world, 1, "allreduce").entered_ns += ((rank == 75) - (rank == 76)) * kSecond;
    test.job.ranks[rank].host = absl::StrCat("node", rank % 3);
  }
  const std::string text = FormatHangVerdict(Diagnose(test));
  EXPECT_THAT(text, StartsWith("rank 77 (node2) never came to allreduce #1 of group world"));
  EXPECT_THAT(text, HasSubstr("   ranks 0-76, 78-4095  3 hosts  waits "));
  EXPECT_THAT(text, HasSubstr("49-51 s\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
}

}  // namespace
}  // namespace ott
