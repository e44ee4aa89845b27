#include "ott/questions/hang/cause_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "job_for_test.h"

namespace ott {
namespace {

using Process = RankState::Process;
constexpr int64_t kSecond = JobForTest::kSecond;

// Ranks of which nothing is known but that they have a state.
JobState Job() {
  JobForTest test(7);
  test.Group("dp", {0, 1, 2, 3, 4, 5, 6});
  for (RankState& rank : test.job.ranks) {
    rank.place = "";
    rank.last_event_ns = 0;
  }
  return test.job;
}

HangCause Cause(HangCause::Kind kind, int rank, const std::vector<int>& waiting, double seconds) {
  HangCause cause;
  cause.set_kind(kind);
  cause.add_ranks(rank);
  cause.set_group("dp");
  cause.set_operation("sum");
  cause.set_sequence(7);
  cause.set_iteration(3);
  *cause.mutable_waiting() = {waiting.begin(), waiting.end()};
  cause.set_waited_seconds(seconds);
  return cause;
}

std::string Describe(const JobState& job, const std::vector<HangCause>& causes) {
  std::vector<const HangCause*> pointers;
  for (const HangCause& cause : causes) pointers.push_back(&cause);
  return DescribeCauses(job, pointers);
}

TEST(CauseText, SaysEachKindOfOneRankAndOfTwoWithThoseThatWait) {
  const std::string at = "sum #7 of group dp (iteration 3)";
  struct {
    HangCause::Kind kind;
    bool others_wait_elsewhere;
    std::string one;
    std::string two;
  } const kinds[] = {
      {HangCause::NEVER_CAME, false, "never came to ", "never came to "},
      {HangCause::NEVER_LEFT, false, "never left ", "never left "},
      {HangCause::DEVICE_STANDS, false, "called, but its device never began, ",
       "called, but their devices never began, "},
      {HangCause::DIFFERENT_SIZE, false, "is to blame for ", "is to blame for "},
      {HangCause::LEFT, true, "left training without ending it", "left training without ending it"},
      {HangCause::DEAD, true, "is dead: its process is gone", "are dead: their processes are gone"},
      {HangCause::STOPPED, true, "is stopped, by a signal or a debugger",
       "are stopped, by a signal or a debugger"},
      {HangCause::SILENT, true, "is dead or stopped: it gives no sign of life",
       "are dead or stopped: they give no sign of life"},
      {HangCause::SLOW, true, "is behind, but moves", "are behind, but move"},
  };
  for (const auto& [kind, elsewhere, one, two] : kinds) {
    EXPECT_EQ(Describe(Job(), {Cause(kind, 1, {}, 0)}), absl::StrCat("rank 1 ", one, elsewhere ? "" : at));
    EXPECT_EQ(
        Describe(Job(), {Cause(kind, 1, {0}, 0)}),
        absl::StrCat("rank 1 ", one,
                     elsewhere ? "; rank 0 has waited for it at " + at : at + ", where rank 0 has waited"));
    EXPECT_EQ(Describe(Job(), {Cause(kind, 2, {0, 3}, 0.5), Cause(kind, 1, {0}, 9)}),
              absl::StrCat("ranks 1, 2 ", two,
                           elsewhere ? "; ranks 0, 3 have waited for 0.50 s for them at " + at
                                     : at + ", where ranks 0, 3 have waited for 0.50 s"));
    HangCause without_operation = Cause(kind, 1, {0}, 9);
    without_operation.set_operation("");
    EXPECT_EQ(Describe(Job(), {without_operation}), "rank 1 " + one);
    HangCause without_numbers = Cause(kind, 1, {0}, 0);
    without_numbers.set_iteration(-1);
    EXPECT_EQ(Describe(Job(), {without_numbers}).find("iteration"), std::string::npos);
    without_numbers.set_sequence(0);
    EXPECT_EQ(Describe(Job(), {without_numbers}).find_first_of("(#"), std::string::npos);
  }
}

TEST(CauseText, SaysByWhomADeadRankWasEnded) {
  JobState job = Job();
  job.ranks[1].terminated_ns = kSecond;
  EXPECT_EQ(Describe(job, {Cause(HangCause::DEAD, 1, {}, 0)}),
            "rank 1 is dead: its process is gone, ended by SIGTERM");
  const std::vector<HangCause> both = {Cause(HangCause::DEAD, 1, {}, 0), Cause(HangCause::DEAD, 2, {}, 0)};
  EXPECT_EQ(Describe(job, both), "ranks 1, 2 are dead: their processes are gone");
  job.ranks[2].terminated_ns = 2 * kSecond;
  EXPECT_EQ(Describe(job, both), "ranks 1, 2 are dead: their processes are gone, ended by SIGTERM");
}

TEST(CauseText, SaysWhereTheFirstThreeAre) {
  JobState job = Job();
  std::vector<HangCause> causes;
  std::string places;
  for (int rank = 5; rank >= 1; --rank) causes.push_back(Cause(HangCause::NEVER_LEFT, rank, {}, 0));
  EXPECT_EQ(Describe(job, causes), "ranks 1-5 never left sum #7 of group dp (iteration 3); ...");
  for (RankState& rank : job.ranks) rank.place = "load";
  job.ranks[2].place = "";
  EXPECT_EQ(Describe(job, causes),
            "ranks 1-5 never left sum #7 of group dp (iteration 3); rank 1 is in \"load\" since 100 s; rank "
            "3 is in \"load\" since 100 s; ...");
  causes.erase(causes.begin(), causes.begin() + 2);
  EXPECT_EQ(Describe(job, causes),
            "ranks 1-3 never left sum #7 of group dp (iteration 3); rank 1 is in \"load\" since 100 s; rank "
            "3 is in \"load\" since 100 s");
  causes.erase(causes.begin());
  EXPECT_EQ(Describe(job, {causes[1]}),
            "rank 1 never left sum #7 of group dp (iteration 3); it is in \"load\" since 100 s");
}

TEST(CauseText, SaysOfAPlaceWhatIsKnown) {
  JobState job = Job();
  RankState& rank = job.ranks[1];
  const RankState nothing = rank;
  const auto place = [&](const auto& change) {
    rank = nothing;
    change();
    return DescribePlace(job, 1);
  };
  const auto in_load = [&](double cpu_share, Process process) {
    rank.place = "load";
    rank.cpu_share = cpu_share;
    rank.process = process;
  };
  EXPECT_EQ(place([] {}), "");
  EXPECT_EQ(place([&] { rank.last_completed = "sum #6"; }), "completed sum #6 last");
  EXPECT_EQ(place([&] {
              rank.last_completed = "sum #6";
              rank.last_event_ns = 995 * kSecond;
            }),
            "is outside of all measurements since 5.00 s");
  EXPECT_EQ(place([&] { in_load(-1, Process::kAlive); }), "is in \"load\" since 100 s");
  EXPECT_EQ(place([&] { in_load(0, Process::kAlive); }),
            "is in \"load\" since 100 s, where it takes no CPU time");
  EXPECT_EQ(place([&] { in_load(0.1, Process::kStopped); }), "is in \"load\" since 100 s, where it computes");
  EXPECT_EQ(place([&] { in_load(1, Process::kDead); }), "was in \"load\" for 100 s");
  EXPECT_EQ(place([&] { in_load(1, Process::kSilent); }), "was in \"load\" for 100 s");
  EXPECT_EQ(place([&] {
              in_load(-1, Process::kAlive);
              rank.place_since_ns = rank.now_ns;
            }),
            "is in \"load\"");
  EXPECT_EQ(place([&] {
              in_load(1, Process::kDead);
              rank.left = true;
            }),
            "was in iteration 103");
  EXPECT_EQ(place([&] { rank.left = rank.finished = true; }),
            "has finished its training after 103 iterations");
}

TEST(CauseText, CountsSecondsFromWhatIsKnown) {
  RankState rank;
  rank.now_ns = 1000 * kSecond;
  EXPECT_EQ(SecondsSince(rank, 1), 1000 - 1e-9);
  EXPECT_EQ(SecondsSince(rank, 0), 0);
  EXPECT_EQ(SecondsSince(rank, -kSecond), 0);
  EXPECT_EQ(SecondsSince(rank, 1001 * kSecond), 0);
  EXPECT_EQ(DescribeSeconds(9.994), "9.99 s");
  EXPECT_EQ(DescribeSeconds(10), "10 s");
}

}  // namespace
}  // namespace ott
