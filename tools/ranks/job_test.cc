#include "tools/ranks/job.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::ranks {
namespace {

using prof::Profile;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMillisecond = 1'000'000;

// A trace of steps of 100 ms with a kernel and an all-reduce each.
Profile Trace() {
  Profile profile;
  profile.kernel_names = {"gemm",
                          "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
  profile.transfer_names = {"Memcpy HtoD (Pinned -> Device)", "Memset (Device)"};
  profile.threads.emplace_back();
  profile.processes.emplace_back();
  profile.begin_unix_nanoseconds = 0;
  Profile::CollectiveKind kind;
  kind.name = "allreduce";
  kind.dtype = "float32";
  kind.group = "0";
  kind.group_description = "default_pg";
  kind.in_elements = kind.out_elements = 1'000'000;
  kind.group_size = 2;
  profile.collective_kinds = {kind};
  return profile;
}

void AddKernel(Profile* profile, uint32_t name, int64_t call, int64_t start, int64_t end) {
  Profile::Launch launch;
  launch.start = call;
  launch.thread = 0;
  launch.nanoseconds = 1;
  profile->launches.push_back(launch);
  Profile::Kernel kernel{};
  kernel.start = start;
  kernel.end = end;
  kernel.name = name;
  kernel.launch = static_cast<uint32_t>(profile->launches.size() - 1);
  profile->kernels.push_back(kernel);
  if (name == 1) profile->collectives.push_back({static_cast<uint32_t>(profile->kernels.size() - 1), 0, -1});
  if (profile->kernels.size() == 1) profile->first_time = start;
  profile->last_time = std::max(profile->last_time, end);
}

void AddStep(Profile* profile, int number, int64_t start) {
  prof::OpLabel label;
  label.text = "ProfilerStep#" + std::to_string(number);
  profile->labels.push_back(label);
  profile->threads[0].ranges.push_back(
      {start, start + 90 * kMillisecond, static_cast<uint32_t>(profile->labels.size() - 1), prof::kNone});
  ++profile->num_steps;
}

// Rank 1 comes `late` after rank 0 to each of sixty all-reduces; its clock shows `ahead` more.
std::vector<Profile> TwoRanks(int64_t late, int64_t ahead, int64_t first_step_of_rank_1 = 0,
                              int num_steps = 60) {
  std::vector<Profile> ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(Trace());
  for (int step = 0; step < num_steps; ++step) {
    const int64_t begin = step * 100 * kMillisecond;
    const int64_t meet = begin + 50 * kMillisecond + std::max<int64_t>(late, 0);
    for (int rank = 0; rank < 2; ++rank) {
      if (rank == 1 && step < first_step_of_rank_1) continue;
      const int64_t shift = rank * ahead;
      const int64_t come = begin + 50 * kMillisecond + rank * late;
      // Ends differ by some microseconds, now in this, now in that order.
      const int64_t end = meet + 10 * kMillisecond + ((step + rank) % 2) * 3'000;
      Profile& profile = ranks[static_cast<size_t>(rank)];
      AddStep(&profile, step, begin + shift);
      AddKernel(&profile, 0, begin + shift, begin + shift + kMillisecond, come + shift);
      AddKernel(&profile, 1, begin + shift + 1, come + shift, end + shift);
    }
  }
  return ranks;
}

Job Describe(const std::vector<Profile>& profiles) {
  std::vector<RankTrace> traces;
  for (size_t i = 0; i < profiles.size(); ++i) traces.push_back({static_cast<int>(i), &profiles[i]});
  return DescribeJob(traces);
}

TEST(TimeSplit, EachMomentCountsOnceComputeFirst) {
  Profile profile = Trace();
  AddKernel(&profile, 0, 0, 100, 200);
  AddKernel(&profile, 1, 0, 150, 300);  // 50 overlapped, 100 exposed
  profile.transfers.push_back({290, 350, 64, 0, 0, 0, 0, 0});
  profile.transfers.push_back({400, 410, 64, 1, 0, 0, 0, 0});
  const TimeSplit split = SplitTime(profile);
  EXPECT_EQ(split.total, 310);
  EXPECT_EQ(split.compute, 110);
  EXPECT_EQ(split.memsets, 10);
  EXPECT_EQ(split.communication, 150);
  EXPECT_EQ(split.exposed_communication, 100);
  EXPECT_EQ(split.copies, 60);
  EXPECT_EQ(split.exposed_copies, 50);
  EXPECT_EQ(split.busy, 260);
  EXPECT_EQ(split.idle, 50);
}

TEST(TimeSplit, IdleTimeIsTheHostsTheLaunchsOrAQueues) {
  Profile profile = Trace();
  prof::OpLabel barrier;
  barrier.kind = prof::OpLabel::Kind::kOp;
  barrier.description.module = "c10d";
  barrier.description.op = "barrier";
  profile.labels.push_back(barrier);
  AddKernel(&profile, 0, 90, 100, 200);
  AddKernel(&profile, 0, 260, 270,
            300);  // called late: 60 of the host, 20 of them in the barrier; 10 of the launch
  profile.threads[0].ranges.push_back({210, 230, 0, prof::kNone});
  AddKernel(&profile, 0, 280, 340, 400);  // called before the device was idle
  const TimeSplit split = SplitTime(profile);
  EXPECT_EQ(split.idle, 110);
  EXPECT_EQ(split.idle_host, 40);
  EXPECT_EQ(split.idle_collective, 20);
  EXPECT_EQ(split.idle_launch, 10);
  EXPECT_EQ(split.idle_queued, 40);
}

TEST(TimeSplit, WhatWasLaunchedBeforeTheTraceDoesNotCount) {
  Profile profile = Trace();
  AddKernel(&profile, 0, 0, 100, 200);
  profile.kernels.push_back(profile.kernels[0]);
  profile.kernels[1].launch = prof::kNone;
  profile.kernels[1].start = 0;
  const TimeSplit split = SplitTime(profile);
  EXPECT_EQ(split.total, 100);
  EXPECT_EQ(split.num_left_out, 1);
}

TEST(Job, TheRankThatComesLateIsNamedWithItsCost) {
  const std::vector<Profile> ranks = TwoRanks(20 * kMillisecond, 0);
  const Job job = Describe(ranks);
  ASSERT_EQ(job.hold_ups.size(), 1U);
  EXPECT_EQ(job.hold_ups[0].rank, 1);
  EXPECT_NEAR(job.hold_ups[0].seconds_per_step, 0.02, 1e-6);
  EXPECT_EQ(job.num_matched, 60);
  const std::string text = FormatHoldUps(job);
  EXPECT_THAT(text, HasSubstr("all wait for rank 1 at \"allreduce of group default_pg\": 20 ms a step"));
  // 4 MB in 10 ms, of which each link carries as much.
  EXPECT_THAT(FormatCollectives(job, 5), HasSubstr("4 MB     60     10 ms"));
  EXPECT_NEAR(static_cast<double>(job.collectives[0].transfer), 600e6, 6e5);
  EXPECT_NEAR(static_cast<double>(job.collectives[0].wait), 600e6, 1e5);
  EXPECT_EQ(job.collectives[0].last_rank, 1);
}

TEST(Job, NobodyIsBlamedWhereRanksComeTogether) {
  for (const int64_t late : {int64_t{0}, int64_t{2'000}, int64_t{-2'000}}) {
    const Job job = Describe(TwoRanks(late, 0));
    EXPECT_TRUE(job.hold_ups.empty()) << late;
    EXPECT_THAT(FormatHoldUps(job), HasSubstr("no rank holds the others up"));
  }
}

TEST(Job, OfTooFewStepsItCannotBeToldWhoWaits) {
  for (const int64_t late : {int64_t{0}, 20 * kMillisecond}) {
    const Job job = Describe(TwoRanks(late, 0, 0, 10));
    EXPECT_TRUE(job.hold_ups.empty());
    EXPECT_THAT(FormatHoldUps(job), HasSubstr("no collective came more than 10 times, and 40 are needed"));
  }
}

TEST(Job, ClocksOfTwoMachinesAreFoundByTheEndsOfCollectives) {
  // A clock that is 5 ms ahead hides that the rank comes 4 ms early, or late.
  for (const int64_t late : {-4 * kMillisecond, 4 * kMillisecond}) {
    const Job job = Describe(TwoRanks(late, 5 * kMillisecond));
    EXPECT_NEAR(static_cast<double>(job.clocks[1].at_begin), -5e6, 1e4);
    EXPECT_LT(job.clocks[1].error_bound, 10'000);
    ASSERT_EQ(job.hold_ups.size(), 1U) << late;
    EXPECT_EQ(job.hold_ups[0].rank, late > 0 ? 1 : 0);
  }
}

TEST(Job, CollectivesOfATraceThatBeganLaterMatchByTheirStep) {
  const Job job = Describe(TwoRanks(20 * kMillisecond, 0, 4));
  EXPECT_EQ(job.num_incomplete, 4);
  ASSERT_EQ(job.hold_ups.size(), 1U);
  EXPECT_EQ(job.hold_ups[0].rank, 1);
}

TEST(Job, SequenceNumbersOfTheGroupMatchWhereIdsAndOrderDoNot) {
  std::vector<Profile> ranks = TwoRanks(20 * kMillisecond, 0);
  for (Profile& rank : ranks) {
    rank.labels.clear();
    rank.threads[0].ranges = {};
    for (size_t i = 0; i < rank.collectives.size(); ++i)
      rank.collectives[i].sequence_number = 100 + static_cast<int64_t>(i);
  }
  ranks[1].collectives.erase(ranks[1].collectives.begin(), ranks[1].collectives.begin() + 3);
  const Job job = Describe(ranks);
  EXPECT_EQ(job.num_incomplete, 3);
  EXPECT_NEAR(static_cast<double>(job.collectives[0].wait), 570e6, 1e5);
}

TEST(Job, GroupsOfOtherRanksAreNotMatched) {
  std::vector<Profile> ranks = TwoRanks(20 * kMillisecond, 0);
  ranks[0].collective_kinds[0].group_ranks = "[0, 2]";
  ranks[1].collective_kinds[0].group_ranks = "[1, 3]";
  const Job job = Describe(ranks);
  EXPECT_TRUE(job.hold_ups.empty());
  EXPECT_THAT(FormatHoldUps(job), HasSubstr("cannot tell who waits for whom"));
}

TEST(Job, OneRankTellsNothingOfOthers) {
  std::vector<Profile> ranks;
  ranks.push_back(Trace());
  EXPECT_THAT(FormatHoldUps(Describe(ranks)), HasSubstr("cannot tell"));
  EXPECT_THAT(FormatSplits(Describe(ranks)), Not(HasSubstr("all")));
}

}  // namespace
}  // namespace ott::ranks
