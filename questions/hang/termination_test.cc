#include "ott/questions/hang/termination.h"

#include <string>

#include "gtest/gtest.h"
#include "job_for_test.h"

namespace ott {
namespace {

using Process = RankState::Process;
constexpr int64_t kSecond = JobForTest::kSecond;

// Three ranks whose processes are gone, ended in this order: 1, 0, 2.
JobState Ended() {
  JobForTest test(3);
  for (RankState& rank : test.job.ranks) rank.process = Process::kDead;
  test.job.ranks[0].terminated_ns = 1002 * kSecond;
  test.job.ranks[1].terminated_ns = 1000 * kSecond;
  test.job.ranks[2].terminated_ns = 1003 * kSecond;
  test.job.ranks[0].terminated_by = "orted";
  test.job.ranks[1].terminated_by = "slurmstepd";
  return test.job;
}

TEST(Termination, IsOfTheFirstRankThatNotedIt) {
  const std::string first = "slurmstepd ended the job by SIGTERM at 1970-01-01T00:16:40Z";
  JobState job = Ended();
  EXPECT_EQ(DescribeTermination(job), first);
  EXPECT_EQ(DescribeTerminationOfRank(job.ranks[1]), ", ended by SIGTERM from slurmstepd");
  EXPECT_EQ(DescribeTerminationOfRank(job.ranks[2]), ", ended by SIGTERM");
  job.job = "Slurm job 7";
  EXPECT_EQ(DescribeTermination(job), first + " (Slurm job 7)");
  for (const auto& [ends, is_over] : {std::pair(1, true), {1010, true}, {1011, false}}) {
    job.job_ends_s = ends;
    EXPECT_EQ(DescribeTermination(job),
              first + (is_over ? ", when the time of Slurm job 7 was over" : " (Slurm job 7)"));
  }
  job.job_ends_s = 0;
  job.ranks[1].problem = "no recorder";
  EXPECT_EQ(DescribeTermination(job), "orted ended the job by SIGTERM at 1970-01-01T00:16:42Z (Slurm job 7)");
  job.ranks[0].terminated_ns = 0;
  EXPECT_EQ(DescribeTermination(job),
            "somebody ended the job by SIGTERM at 1970-01-01T00:16:43Z (Slurm job 7)");
  job.ranks[2].terminated_by = "Ctrl-C";
  EXPECT_EQ(DescribeTermination(job), "Ctrl-C ended the job at 1970-01-01T00:16:43Z (Slurm job 7)");
  EXPECT_EQ(DescribeTerminationOfRank(job.ranks[2]), ", ended by Ctrl-C");
  job.ranks[2].terminated_ns = 0;
  EXPECT_EQ(DescribeTermination(job), "");
  EXPECT_EQ(DescribeTerminationOfRank(job.ranks[2]), "");
}

TEST(Termination, IsNoneWhileAnyRankLives) {
  for (int rank = 0; rank < 3; ++rank) {
    for (const Process process :
         {Process::kUnknown, Process::kAlive, Process::kStopped, Process::kDead, Process::kSilent}) {
      JobState job = Ended();
      job.ranks[rank].process = process;
      EXPECT_EQ(DescribeTermination(job).empty(), process == Process::kAlive || process == Process::kStopped);
    }
  }
}

}  // namespace
}  // namespace ott
