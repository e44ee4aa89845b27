#include "ott/questions/hang/diagnosis.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job_for_test.h"
#include "ott/questions/hang/hang_report.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Process = RankState::Process;
using Progress = JobOperation::Progress;

constexpr int64_t kSecond = JobForTest::kSecond;

HangVerdict Diagnose(const JobForTest& test, double after_seconds = 30) {
  return DiagnoseHang(test.job, {after_seconds});
}

// Four ranks, of which all but rank 2 wait in #412.
JobForTest WithoutRank2() {
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    test.Complete(rank, world, 411);
    if (rank != 2) test.Call(rank, world, 412, "allreduce");
  }
  return test;
}

TEST(DiagnoseHang, AnOperationIsNamedWithItsGroupEscaped) {
  JobForTest test(2);
  test.Call(0, test.Group("data/1\n", {0, 1}), 7, "reduce\nnot hanging");
  EXPECT_THAT(Diagnose(test).verdict(),
              HasSubstr("never came to reduce\\nnot hanging #7 of group data/1\\n (iteration 103)"));
}

TEST(DiagnoseHang, ARankThatNeverCameIsNamedWithWhereItIs) {
  JobForTest test = WithoutRank2();
  test.job.ranks[2].host = "node1";
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::HANGING);
  EXPECT_EQ(
      verdict.verdict(),
      "rank 2 (node1) never came to allreduce #412 of group dp0 (iteration 103), where ranks 0, 1, 3 have "
      "waited for 50 s; it is in \"data\" since 100 s");
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  ASSERT_EQ(verdict.causes_size(), 1);
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::NEVER_CAME);
  EXPECT_EQ(verdict.causes(0).group(), "dp0");
  EXPECT_EQ(verdict.causes(0).sequence(), 412);
  EXPECT_EQ(verdict.causes(0).place(), "data");
}

TEST(DiagnoseHang, ChainsOverGroupsAreFollowedToTheirRoot) {
  // 0 and 1 wait for 2, which waits with 3 for 4, which receives from 5.
  JobForTest test(6);
  const int a = test.Group("a", {0, 1, 2});
  const int b = test.Group("b", {2, 3, 4});
  const int pipeline = test.Group("pipeline", {4, 5});
  test.Call(0, a, 1, "allreduce");
  test.Call(1, a, 1, "allreduce");
  test.Call(2, b, 7, "allgather");
  test.Call(3, b, 7, "allgather");
  test.Send(4, pipeline, 5, JobOperation::Direction::kReceive);
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(5)) << verdict.verdict();
}

TEST(DiagnoseHang, WhoWaitsForThoseThatWaitIsSaidToBeHeldUp) {
  JobForTest test(4);
  const int a = test.Group("a", {0, 1});
  const int b = test.Group("b", {1, 2, 3});
  test.Call(0, a, 1, "allreduce");
  test.Call(1, b, 7, "allgather");
  test.Call(3, b, 7, "allgather");
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2)) << verdict.verdict();
  EXPECT_THAT(verdict.held_up(), ElementsAre(0));
  EXPECT_THAT(verdict.verdict(), EndsWith("; rank 0 waits for those that wait for it"));
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
                ElementsAre(AllOf(HasSubstr("completed allreduce #57"), HasSubstr("without rank 2"),
                                  HasSubstr("collective_groups"))));
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
  for (int num_unknown = 0; num_unknown <= 2; ++num_unknown) {
    if (num_unknown > 0) test.job.ranks[num_unknown - 1].problem = "no recorder";
    const HangVerdict verdict = Diagnose(test);
    EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
    EXPECT_EQ(verdict.suspects_size(), 2 - num_unknown);
    EXPECT_EQ(verdict.verdict(), cannot_tell + of_suspects[num_unknown]);
  }
}

TEST(DiagnoseHang, WhoLeavesLastIsNotBlamedForWhatSomeNeverCameTo) {
  // A reduction that its leaves need not wait for: rank 0 still waits for rank 2.
  JobForTest test(4);
  const int group = test.Group("dp0", {0, 1, 2, 3});
  for (const int rank : {1, 3}) test.Call(rank, group, 51, "reduce", Progress::kCompleted);
  test.Call(0, group, 51, "reduce");
  for (const int rank : {1, 3}) test.Call(rank, group, 52, "allreduce");
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2)) << verdict.verdict();
}

TEST(DiagnoseHang, OfTwoThatNeverCameFromDifferentPlacesOneMayWaitForTheOther) {
  // A pipeline that nobody declared: rank 0 receives from rank 2, which stands in forward.
  JobForTest test = WithoutRank2();
  test.job.ranks[0].operations.clear();
  test.Complete(0, 0, 411);
  test.job.ranks[0].positions[0].entered = test.job.ranks[0].positions[0].enqueued = 411;
  test.job.ranks[0].place = "recv";
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL) << verdict.verdict();
  EXPECT_THAT(verdict.culprits(), IsEmpty());
  EXPECT_THAT(verdict.suspects(), ElementsAre(0, 2));
  EXPECT_THAT(verdict.verdict(), HasSubstr("rank 2 is in \"data\" since 100 s, rank 0 is in \"recv\""));
  // A rank that is ahead is held up, whatever by.
  test.job.ranks[2].iteration = 102;
  const HangVerdict behind = Diagnose(test);
  EXPECT_THAT(behind.culprits(), ElementsAre(2)) << behind.verdict();
  EXPECT_THAT(behind.notes(), ElementsAre(HasSubstr("rank 0 is missed as well, but ahead")));
}

TEST(DiagnoseHang, SeveralCulpritsAreAllNamed) {
  JobForTest test = WithoutRank2();
  test.job.ranks[3].operations.clear();
  test.job.ranks[3].place = "data";
  test.Complete(3, 0, 0);
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2, 3));
}

// Returns the ranks whose places a cause has, in the order in which it has them.
std::vector<int> RanksOfPlaces(absl::string_view cause) {
  std::vector<int> ranks;
  for (const absl::string_view part : absl::StrSplit(cause, "; ")) {
    const std::vector<std::string> words = absl::StrSplit(part, ' ');
    if (words.size() > 3 && words[0] == "rank" && words[2] == "is") ranks.push_back(std::stoi(words[1]));
  }
  return ranks;
}

TEST(DiagnoseHang, PlacesOfCulpritsComeInOrderOfRanksWhoeverIsReachedFirst) {
  constexpr int kRanks = 8;
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    JobForTest test(kRanks);
    std::vector<int> ranks(kRanks);
    std::iota(ranks.begin(), ranks.end(), 0);
    const int world = test.Group("world", ranks);
    std::shuffle(ranks.begin(), ranks.end(), random);
    std::vector<int> culprits(ranks.begin(), ranks.begin() + 3);
    // One rank waits for one of them alone, and three for all.
    const int pair = test.Group("pair", {ranks[3], culprits[0]});
    test.Call(ranks[3], pair, 1, "send");
    for (int i = 4; i < kRanks; ++i) test.Call(ranks[i], world, 1, "allreduce");
    const HangVerdict verdict = Diagnose(test);
    std::sort(culprits.begin(), culprits.end());
    ASSERT_THAT(verdict.culprits(), ElementsAreArray(culprits)) << verdict.verdict();
    std::vector<int> named;
    for (const absl::string_view cause : absl::StrSplit(verdict.verdict(), "; and ")) {
      const std::vector<int> of_cause = RanksOfPlaces(cause);
      EXPECT_TRUE(std::is_sorted(of_cause.begin(), of_cause.end())) << verdict.verdict();
      named.insert(named.end(), of_cause.begin(), of_cause.end());
    }
    std::sort(named.begin(), named.end());
    EXPECT_THAT(named, ElementsAreArray(culprits)) << verdict.verdict();
  }
}

// All ranks run through one list of operations, each through those of its groups, until nobody can go on:
// what one rank does not come to stands, and all that comes after it.
struct StoppedJob {
  JobForTest test{0};
  int culprit = 0;
  // By group and number of an operation that it does not come to.
  std::map<std::pair<std::string, int64_t>, std::vector<int>> waiting;
  std::vector<int> held_up;  // where it need not come
};

StoppedJob RunUntilItStands(std::mt19937& random) {
  const int num_ranks = 3 + static_cast<int>(random() % 6);
  StoppedJob job;
  job.test = JobForTest(num_ranks);
  std::vector<std::vector<int>> groups(1);
  for (int rank = 0; rank < num_ranks; ++rank) groups[0].push_back(rank);
  for (int i = 0; i < 4; ++i) {
    std::vector<int> members;
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (random() % 2 == 0) members.push_back(rank);
    }
    if (members.size() > 1) groups.push_back(members);
  }
  for (size_t i = 0; i < groups.size(); ++i) job.test.Group(absl::StrCat("group ", i), groups[i]);
  std::vector<int> operations;
  for (int i = 0; i < 12; ++i) operations.push_back(static_cast<int>(random() % groups.size()));
  operations.push_back(0);
  job.culprit = static_cast<int>(random() % static_cast<unsigned>(num_ranks));
  const size_t stops_before = random() % operations.size();
  std::vector<int64_t> sequences(groups.size());
  std::vector<bool> stands(static_cast<size_t>(num_ranks), false);
  for (size_t i = 0; i < operations.size(); ++i) {
    const int group = operations[i];
    const int64_t sequence = ++sequences[group];
    std::vector<int> came, missing;
    for (const int rank : groups[group]) {
      if (i >= stops_before && rank == job.culprit && !stands[rank]) {
        stands[rank] = true;
        missing.push_back(rank);
      } else {
        (stands[rank] ? missing : came).push_back(rank);
      }
    }
    for (const int rank : came) {
      job.test.Call(rank, group, sequence, "allreduce",
                    missing.empty() ? Progress::kCompleted : Progress::kEntered);
      if (missing.empty()) continue;
      stands[rank] = true;
      const bool awaits = std::count(missing.begin(), missing.end(), job.culprit) > 0;
      (awaits ? job.waiting[{absl::StrCat("group ", group), sequence}] : job.held_up).push_back(rank);
    }
  }
  std::sort(job.held_up.begin(), job.held_up.end());
  return job;
}

TEST(DiagnoseHang, WhoStopsAnyJobIsNamedWithThoseThatWaitForIt) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    StoppedJob job = RunUntilItStands(random);
    RankState& culprit = job.test.job.ranks[job.culprit];
    culprit.process = std::vector<Process>{Process::kAlive, Process::kDead, Process::kStopped,
                                           Process::kSilent}[random() % 4];
    const HangVerdict verdict = Diagnose(job.test);
    ASSERT_EQ(verdict.answer(), HangVerdict::HANGING) << verdict.verdict();
    EXPECT_THAT(verdict.culprits(), ElementsAre(job.culprit)) << verdict.verdict();
    EXPECT_THAT(verdict.suspects(), IsEmpty());
    EXPECT_THAT(verdict.unknown(), IsEmpty());
    ASSERT_EQ(verdict.causes_size(), 1) << verdict.verdict();
    const HangCause& cause = verdict.causes(0);
    EXPECT_EQ(cause.kind(), culprit.process == Process::kAlive     ? HangCause::NEVER_CAME
                            : culprit.process == Process::kDead    ? HangCause::DEAD
                            : culprit.process == Process::kStopped ? HangCause::STOPPED
                                                                   : HangCause::SILENT);
    EXPECT_THAT(cause.waiting(), ElementsAreArray(job.waiting[{cause.group(), cause.sequence()}]));
    EXPECT_THAT(cause.waiting(), Not(IsEmpty()));
    EXPECT_DOUBLE_EQ(cause.waited_seconds(), 50);
    EXPECT_THAT(verdict.held_up(), ElementsAreArray(job.held_up)) << verdict.verdict();
  }
}

TEST(DiagnoseHang, AHalfThatStandsInTheOtherIsNoWait) {
  JobForTest test(2);
  const int pipeline = test.Group("pipeline", {0, 1});
  test.Send(0, pipeline, 1, JobOperation::Direction::kSend);
  test.Send(1, pipeline, 0, JobOperation::Direction::kReceive);
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL) << verdict.verdict();
  EXPECT_THAT(verdict.culprits(), IsEmpty());
}

TEST(DiagnoseHang, AShortWaitIsNoHang) {
  const HangVerdict verdict = Diagnose(WithoutRank2(), 60);
  EXPECT_EQ(verdict.answer(), HangVerdict::NOT_HANGING);
  EXPECT_THAT(verdict.verdict(),
              StartsWith("not hanging: no rank has waited for more than 50 s (limit 60 s)"));
}

TEST(DiagnoseHang, ARankThatMovesIsSlowAndNoCulprit) {
  JobForTest test = WithoutRank2();
  test.job.ranks[2].last_event_ns = 999 * kSecond;
  test.job.ranks[2].iteration = 101;
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::NOT_HANGING);
  EXPECT_THAT(verdict.culprits(), IsEmpty());
  EXPECT_THAT(verdict.verdict(), HasSubstr("2 iterations behind"));
}

TEST(DiagnoseHang, ADeadRankIsNamedWhereverItStood) {
  JobForTest test = WithoutRank2();
  test.Call(2, 0, 412, "allreduce");
  test.job.ranks[2].process = Process::kDead;
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_THAT(verdict.verdict(), StartsWith("rank 2 is dead"));
}

TEST(DiagnoseHang, AStoppedRankIsNamedBeforeTheOthersHaveWaitedForLong) {
  JobForTest test = WithoutRank2();
  test.job.ranks[2].process = Process::kStopped;
  const HangVerdict verdict = Diagnose(test, 60);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_THAT(verdict.verdict(), StartsWith("rank 2 is stopped"));
}

TEST(DiagnoseHang, ADeathWhileWaitingForARootIsAConsequence) {
  JobForTest test = WithoutRank2();
  test.job.ranks[0].process = Process::kDead;
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_THAT(verdict.notes(), ElementsAre(HasSubstr("may be a consequence")));
}

TEST(DiagnoseHang, AnotherOperationIsNamedWithBoth) {
  JobForTest test = WithoutRank2();
  test.Call(2, 0, 412, "broadcast");
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_EQ(verdict.verdict(),
            "rank 2 as \"broadcast\" called #412 of group dp0, which ranks 0, 1, 3 as \"allreduce\" called");
  EXPECT_THAT(verdict.ranks(2).place(), StartsWith("broadcast #412"));
  EXPECT_THAT(verdict.ranks(1).place(), StartsWith("allreduce #412"));
}

TEST(DiagnoseHang, AnotherSizeIsNamedWithBoth) {
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) test.Call(rank, world, 5, "allreduce").size = rank == 1 ? 100 : 200;
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(1));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::DIFFERENT_SIZE);
  EXPECT_THAT(verdict.verdict(), HasSubstr("size 100"));
}

TEST(DiagnoseHang, TwoRanksThatDisagreeAreNotBlamed) {
  JobForTest test(2);
  const int world = test.Group("dp0", {0, 1});
  test.Call(0, world, 5, "allreduce");
  test.Call(1, world, 5, "broadcast");
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::HANGING);
  EXPECT_THAT(verdict.culprits(), IsEmpty());
  EXPECT_THAT(verdict.verdict(), HasSubstr("nobody is blamed"));
}

TEST(DiagnoseHang, NamesThatHaveAlwaysDifferedAreNoMismatch) {
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = rank == 0 ? "reduce (root)" : "reduce";
    test.Call(rank, world, 4, name, Progress::kCompleted);
    if (rank != 2) test.Call(rank, world, 5, name);
  }
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2));
}

TEST(DiagnoseHang, WhoCallsAsMostDoHasNoHabitThatExcusesIt) {
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    test.Call(rank, world, 4, rank == 0 ? "reduce (root)" : "reduce", Progress::kCompleted);
    test.Call(rank, world, 5, rank == 3 ? "broadcast" : "reduce");
  }
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
  ASSERT_EQ(verdict.causes_size(), 1);
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::DIFFERENT_OPERATION);
}

TEST(DiagnoseHang, ASkippedOperationIsSeenByTheIterations) {
  // Rank 3 left one out in iteration 102, and nothing stopped until now.
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    for (int i = 1; i <= 5; ++i) {
      test.Call(rank, world, i, "allreduce", i < 5 ? Progress::kCompleted : Progress::kEntered).iteration =
          rank == 3 && i > 2 ? i + 1 : i;
    }
  }
  test.job.ranks[3].operations.pop_back();
  test.Complete(3, world, 4);
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
  EXPECT_THAT(verdict.verdict(), HasSubstr("called: there it left out one before"));
}

TEST(DiagnoseHang, ASkippedOperationIsNamedRatherThanNamesThatDifferByIt) {
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    for (int i = 1; i <= 4; ++i) {
      test.Call(rank, world, i, rank == 3 && i == 4 ? "broadcast" : "allreduce",
                i < 4 ? Progress::kCompleted : Progress::kEntered)
          .iteration = rank == 3 && i > 2 ? i + 1 : i;
    }
  }
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
  EXPECT_THAT(verdict.verdict(), HasSubstr("left out one before"));
}

TEST(DiagnoseHang, WhatWasSkippedBeforeTheRecordBeginsIsSaidToBeEarlier) {
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    for (int i = 137; i <= 200; ++i) {
      test.Call(rank, world, i, "allreduce", i < 200 ? Progress::kCompleted : Progress::kEntered).iteration =
          rank == 3 ? i + 1 : i;
    }
  }
  test.job.ranks[3].operations.pop_back();
  test.Complete(3, world, 199);
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(3)) << verdict.verdict();
  EXPECT_THAT(verdict.verdict(),
              HasSubstr("called: there or earlier, which is not recorded, it left out one"));
}

TEST(DiagnoseHang, WhoFinishedAloneHasDoneTooFewIterations) {
  JobForTest test = WithoutRank2();
  test.job.ranks[2].finished = true;
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::DIFFERENT_ITERATIONS);
}

TEST(DiagnoseHang, WhoGoesOnAloneHasDoneTooMany) {
  JobForTest test(4);
  const int world = test.Group("dp0", {0, 1, 2, 3});
  const int observer = test.Group("ott", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    test.Complete(rank, world, 411);
    test.job.ranks[rank].finished = rank != 1;
    test.Call(rank, rank == 1 ? world : observer, rank == 1 ? 412 : 1, "allreduce");
  }
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(1));
  EXPECT_THAT(verdict.verdict(), HasSubstr("finished training after 103 iterations"));
}

TEST(DiagnoseHang, WhereAGroupIsDividedTheJobTellsWhoDidTooManyIterations) {
  JobForTest test(4);
  const int half = test.Group("ep", {0, 1});
  test.Call(0, half, 412, "dispatch");
  for (int rank = 1; rank < 4; ++rank) test.job.ranks[rank].finished = true;
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(0));
}

TEST(DiagnoseHang, TwoGroupsInOppositeOrderArePrintedAsACycle) {
  JobForTest test(4);
  const int a = test.Group("a", {0, 1, 2, 3});
  const int b = test.Group("b", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) test.Call(rank, rank == 3 ? b : a, 9, "allreduce");
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(3));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::OPPOSITE_ORDER);
  EXPECT_EQ(
      verdict.verdict(),
      "ranks wait in a circle: rank 0 in allreduce #9 of group a (iteration 103) for rank 3; rank 3 in "
      "allreduce "
      "#9 of group b (iteration 103) for rank 0; rank 3 calls the groups in another order than the rest");
}

TEST(DiagnoseHang, OfTwoWhoTakeGroupsInOppositeOrderTheOneThatChangedItIsNamed) {
  JobForTest test(2);
  const int a = test.Group("a", {0, 1});
  const int b = test.Group("b", {0, 1});
  for (int rank = 0; rank < 2; ++rank) {
    test.Call(rank, a, 8, "allreduce", Progress::kCompleted).entered_ns = 10 * kSecond;
    test.Call(rank, b, 8, "allreduce", Progress::kCompleted).entered_ns = 11 * kSecond;
    test.Call(rank, rank == 0 ? a : b, 9, "allreduce");
  }
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(1));
  for (RankState& rank : test.job.ranks)
    rank.operations.erase(rank.operations.begin(), rank.operations.begin() + 2);
  const HangVerdict without_history = Diagnose(test);
  EXPECT_EQ(without_history.answer(), HangVerdict::HANGING);
  EXPECT_THAT(without_history.culprits(), IsEmpty());
}

TEST(DiagnoseHang, EverybodyInDataWaitsForWhatIsOutside) {
  JobForTest test(4);
  test.Group("dp0", {0, 1, 2, 3});
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::HANGING);
  EXPECT_THAT(verdict.culprits(), IsEmpty());
  EXPECT_EQ(verdict.verdict(),
            "everybody waits for what is outside of the job: ranks 0-3 are in \"data\" since 100 s");
}

TEST(DiagnoseHang, SomeRanksInOnePlaceWaitForWhatIsOutsideIfTheyAreMost) {
  for (int num_ranks = 2; num_ranks <= 8; ++num_ranks) {
    for (int num_missing = 1; num_missing < num_ranks; ++num_missing) {
      JobForTest test(num_ranks);
      std::vector<int> ranks(num_ranks), missing;
      std::iota(ranks.begin(), ranks.end(), 0);
      const int group = test.Group("dp0", ranks);
      for (const int rank : ranks) {
        if (rank < num_missing) {
          missing.push_back(rank);
        } else {
          test.Call(rank, group, 1, "allreduce");
        }
      }
      const bool are_most = num_missing >= 2 && num_missing > num_ranks - num_missing;
      const HangVerdict verdict = Diagnose(test);
      EXPECT_EQ(static_cast<size_t>(verdict.causes_size()), are_most ? 1 : missing.size());
      for (const HangCause& cause : verdict.causes()) {
        EXPECT_EQ(cause.kind(), are_most ? HangCause::OUTSIDE : HangCause::NEVER_CAME)
            << num_missing << " of " << num_ranks;
      }
      EXPECT_THAT(verdict.culprits(), ElementsAreArray(are_most ? std::vector<int>() : missing));
    }
  }
}

TEST(DiagnoseHang, OneRankThatIsMissingInManyGroupsIsOneRank) {
  for (int num_ranks = 2; num_ranks <= 6; ++num_ranks) {
    JobForTest test(num_ranks);
    const int missing = num_ranks - 1;
    for (int rank = 0; rank < missing; ++rank)
      test.Call(rank, test.Group(absl::StrCat("g", rank), {rank, missing}), 1, "allreduce");
    EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(missing)) << Diagnose(test).verdict();
  }
}

// Returns ranks that each wait for the next one, in a group of these two.
JobForTest Ring(int num_ranks) {
  JobForTest test(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    const int next = (rank + 1) % num_ranks;
    const int group = test.Group(absl::StrCat("g", rank), {std::min(rank, next), std::max(rank, next)});
    test.Call(rank, group, 9, "allreduce");
  }
  return test;
}

TEST(DiagnoseHang, ACircleIsNoneIfARankMayHaveBegunWhatItCalled) {
  for (int num_ranks = 3; num_ranks <= 5; ++num_ranks) {
    // -1: none.
    for (int caller = -1; caller < num_ranks; ++caller) {
      JobForTest test = Ring(num_ranks);
      test.job.records_entry = false;
      if (caller >= 0) {
        const int group = (caller + num_ranks - 1) % num_ranks;
        test.Call(caller, group, 9, "allreduce", Progress::kEnqueued);
      }
      const HangVerdict verdict = Diagnose(test);
      if (caller < 0) {
        EXPECT_EQ(verdict.answer(), HangVerdict::HANGING) << verdict.verdict();
        for (int rank = 0; rank < num_ranks; ++rank) {
          EXPECT_THAT(verdict.verdict(),
                      HasSubstr(absl::StrCat("rank ", rank, " in allreduce #9 of group g", rank,
                                             " (iteration 103) for rank ", (rank + 1) % num_ranks)));
        }
      } else {
        EXPECT_THAT(verdict.causes(), IsEmpty()) << verdict.verdict();
        EXPECT_THAT(verdict.notes(), Contains(HasSubstr("without knowing when operations began")))
            << caller << " of " << num_ranks;
      }
    }
  }
}

TEST(RankState, HasEnteredWhatIsTheSameInAllThatTellsItApart) {
  JobOperation operation;
  operation.group = 3;
  operation.sequence = 7;
  operation.progress = Progress::kEntered;
  std::vector<JobOperation> others(5, operation);
  others[0].group = 4;
  others[1].sequence = 8;
  others[2].direction = JobOperation::Direction::kSend;
  others[3].progress = Progress::kEnqueued;
  others[4].progress = Progress::kCompleted;
  RankState state;
  state.operations = others;
  EXPECT_EQ(state.Entered(operation), nullptr);
  state.operations.push_back(operation);
  EXPECT_EQ(state.Entered(operation), &state.operations.back());
}

TEST(DiagnoseHang, RanksThatComputeInOnePlaceWork) {
  JobForTest test(4);
  test.Group("dp0", {0, 1, 2, 3});
  for (RankState& rank : test.job.ranks) rank.cpu_share = 0.97;
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::NOT_HANGING);
  EXPECT_THAT(verdict.verdict(),
              StartsWith("not hanging: ranks 0-3 compute in \"data\" since 100 s (97 % of a CPU"));
  // One that has it behind it waits for them.
  test.Call(0, 0, 1, "allreduce");
  EXPECT_EQ(Diagnose(test).answer(), HangVerdict::NOT_HANGING);
  EXPECT_THAT(Diagnose(test).verdict(), HasSubstr("ranks 1-3 compute"));
  test.job.ranks[2].cpu_share = 0.01;
  EXPECT_EQ(Diagnose(test).causes(0).kind(), HangCause::OUTSIDE);
  // A rank that computes alone is still waited for.
  for (const int rank : {1, 3}) test.Call(rank, 0, 1, "allreduce");
  test.job.ranks[2].cpu_share = 0.97;
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2));
  EXPECT_THAT(Diagnose(test).verdict(), HasSubstr("since 100 s, where it computes"));
  // Several threads use more than one CPU, which is said as one.
  JobForTest of_threads(2);
  for (RankState& rank : of_threads.job.ranks) rank.cpu_share = 1.4;
  EXPECT_THAT(Diagnose(of_threads).verdict(), HasSubstr("(100 % of a CPU"));
}

TEST(DiagnoseHang, WhoLeftTrainingIsToBlameWhateverEndedTheOthers) {
  JobForTest test = WithoutRank2();
  test.job.ranks[2].left = true;
  test.job.ranks[2].process = Process::kDead;
  test.job.ranks[2].place = "";
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::LEFT);
  EXPECT_EQ(verdict.verdict(),
            "rank 2 left training without ending it; ranks 0, 1, 3 have waited for 50 s for it at allreduce "
            "#412 of group "
            "dp0 (iteration 103); it was in iteration 103");
  // Then the job was killed, one after another.
  for (const int rank : {0, 1, 3}) test.job.ranks[rank].process = Process::kDead;
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2));
  for (const int rank : {0, 1, 3}) test.job.ranks[rank].left = true;
  test.job.ranks[2].now_ns -= 40 * kSecond;
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2));
}

TEST(DiagnoseHang, AJobThatAllHaveLeftDoesNotHang) {
  JobForTest test(3);
  for (RankState& rank : test.job.ranks) rank.left = true;
  test.job.ranks[1].now_ns -= kSecond;
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::NOT_HANGING);
  EXPECT_EQ(verdict.verdict(),
            "not hanging: ranks 0-2 have left training without ending it, rank 1 first, in iteration 103");
}

TEST(DiagnoseHang, OfTwoThatDiedTheOneThatWaitedForTheOtherIsAConsequence) {
  JobForTest test = WithoutRank2();
  test.job.ranks[2].process = test.job.ranks[0].process = Process::kDead;
  test.job.ranks[2].now_ns -= 30 * kSecond;
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2));
  // Together: which was first is not known.
  test.job.ranks[2].now_ns = test.job.ranks[0].now_ns;
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(0, 2));
}

TEST(DiagnoseHang, AMissingRecorderAtTheEndOfTheWaitsCannotBeTold) {
  JobForTest test = WithoutRank2();
  test.job.ranks[2] = RankState();
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
  EXPECT_THAT(verdict.unknown(), ElementsAre(2));
  EXPECT_THAT(verdict.culprits(), IsEmpty());
}

TEST(DiagnoseHang, ACulpritThatIsCertainIsNamedThoughAnotherRecorderIsMissing) {
  JobForTest test = WithoutRank2();
  test.job.ranks[3] = RankState();
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_THAT(verdict.notes(), ElementsAre(HasSubstr("rank 3")));
}

TEST(DiagnoseHang, OfARankWhosePositionIsMissingMoreIsKnownThanNothing) {
  JobForTest test(4);
  test.Call(0, test.Group("a", {0, 1}), 1, "allreduce");
  test.Call(2, test.Group("b", {2, 3}), 1, "allreduce");
  test.job.ranks[3].positions.clear();
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(1));
  EXPECT_THAT(verdict.notes(),
              ElementsAre("others wait for rank 3, and where it is in that group is not recorded"));
}

TEST(DiagnoseHang, WhereAllCameAndNoneLeftNobodyIsBlamed) {
  JobForTest test = WithoutRank2();
  test.Call(2, 0, 412, "allreduce");
  const HangVerdict verdict = Diagnose(test);
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
  EXPECT_THAT(verdict.verdict(), HasSubstr("all came to allreduce #412"));
  EXPECT_THAT(verdict.suspects(), IsEmpty());
  // The only one that has called less elsewhere may have left something out.
  const int other = test.Group("tp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) test.Complete(rank, other, rank == 3 ? 6 : 7);
  EXPECT_THAT(Diagnose(test).suspects(), ElementsAre(3));
  EXPECT_THAT(Diagnose(test).notes(),
              ElementsAre(StartsWith("rank 3 called less since than the others there")));
  test.Complete(2, other, 6);
  EXPECT_THAT(Diagnose(test).suspects(), IsEmpty());
}

TEST(DiagnoseHang, WhoNeverLeftWhatOthersCompletedIsNamed) {
  // Rank 1's device died in #5; what it called after that it never began, and the others wait for it in #7.
  JobForTest test(4);
  test.job.records_entry = false;
  test.job.has_times = false;
  const int world = test.Group("dp0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    test.Complete(rank, world, rank == 1 ? 4 : 6);
    if (rank == 1) {
      test.Call(1, world, 5, "allreduce");
      test.Call(1, world, 6, "allreduce", Progress::kEnqueued);
    }
    if (rank != 1) test.Call(rank, world, 7, "allreduce");
  }
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(1));
  EXPECT_EQ(verdict.verdict(),
            "rank 1 never left allreduce #5 of group dp0 (iteration 103); it is in \"allreduce\" since 50 s");
}

TEST(DiagnoseHang, WhoNeverLeftIsNamedWhicheverOtherRecorderIsMissing) {
  for (const int unknown : {0, 1, 3, 4}) {
    JobForTest test(5);
    const int world = test.Group("dp0", {0, 1, 2, 3, 4});
    test.job.ranks[unknown].problem = "no recorder";
    for (int rank = 0; rank < 5; ++rank) {
      if (rank == unknown) continue;
      test.Complete(rank, world, rank == 2 ? 4 : 6);
      test.Call(rank, world, rank == 2 ? 5 : 7, "allreduce");
    }
    EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2)) << Diagnose(test).verdict();
  }
}

TEST(DiagnoseHang, OfThoseThatNeverLeftMostAreNotToBlameAndHalfAreWhereAllLeaveTogether) {
  for (const bool synchronizes : {true, false}) {
    for (const int num_standing : {1, 2, 3}) {
      JobForTest test(4);
      const int world = test.Group("dp0", {0, 1, 2, 3});
      for (int rank = 0; rank < 4; ++rank) {
        test.Complete(rank, world, 4);
        test.Call(rank, world, 5, "barrier", rank < num_standing ? Progress::kEntered : Progress::kCompleted);
        test.job.ranks[rank].operations.back().synchronizes = synchronizes;
        if (rank >= num_standing) test.Call(rank, world, 6, "allreduce");
      }
      const HangVerdict verdict = Diagnose(test);
      const std::vector<int> culprits(verdict.culprits().begin(), verdict.culprits().end());
      std::vector<int> expected;
      if (num_standing == 1 || (num_standing == 2 && synchronizes)) {
        for (int rank = 0; rank < num_standing; ++rank) expected.push_back(rank);
      }
      EXPECT_EQ(culprits, expected) << verdict.verdict();
    }
  }
}

TEST(DiagnoseHang, ADeviceThatNeverBeganIsNamed) {
  JobForTest test = WithoutRank2();
  test.Call(2, 0, 412, "allreduce", Progress::kEnqueued);
  const HangVerdict verdict = Diagnose(test);
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::DEVICE_STANDS);
}

TEST(DiagnoseHang, AJobThatEndedAllAtOnceCannotBeTold) {
  JobForTest test = WithoutRank2();
  for (RankState& rank : test.job.ranks) rank.process = Process::kUnknown;
  EXPECT_EQ(Diagnose(test, 60).answer(), HangVerdict::CANNOT_TELL);
  // The verdict still tells what had stood before.
  EXPECT_THAT(Diagnose(test).culprits(), ElementsAre(2));
}

TEST(DiagnoseHang, EachRankHasARowOfItsState) {
  JobForTest test(8);
  const int world = test.Group("dp0", {0, 1, 2, 3, 4, 5, 6, 7});
  test.Call(0, world, 1, "allreduce");
  test.job.ranks[2].finished = true;
  test.job.ranks[3].left = true;
  test.job.ranks[4].process = RankState::Process::kDead;
  test.job.ranks[5].process = RankState::Process::kStopped;
  test.job.ranks[6].process = RankState::Process::kSilent;
  test.job.ranks[7].problem = "no recorder";
  const HangVerdict verdict = Diagnose(test);
  const std::vector<HangRank::State> expected = {HangRank::WAITS,  HangRank::WORKS,  HangRank::FINISHED,
                                                 HangRank::LEFT,   HangRank::DEAD,   HangRank::STOPPED,
                                                 HangRank::SILENT, HangRank::UNKNOWN};
  std::vector<HangRank::State> states;
  for (const HangRank& row : verdict.ranks()) states.push_back(row.state());
  EXPECT_EQ(states, expected);
}

TEST(DiagnoseHang, RanksThatFinishedDoNotHang) {
  JobForTest test(4);
  for (RankState& rank : test.job.ranks) rank.finished = true;
  EXPECT_EQ(Diagnose(test).answer(), HangVerdict::NOT_HANGING);
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
    if (rank != 77) test.Call(rank, world, 1, "allreduce");
  }
  const std::string text = FormatHangVerdict(Diagnose(test));
  EXPECT_THAT(text, StartsWith("rank 77 never came to allreduce #1 of group world"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
}

}  // namespace
}  // namespace ott
