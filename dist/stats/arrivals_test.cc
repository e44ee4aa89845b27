#include "ott/dist/stats/arrivals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kMillisecond = 1'000'000;

// Arrivals at "allreduce", in milliseconds, one a iteration.
ArrivalSummary Of(int rank, const std::vector<int64_t>& milliseconds, int64_t error_bound = 0) {
  RankArrivals arrivals;
  arrivals.error_bound_nanoseconds = error_bound;
  StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
  measurement.name = "allreduce";
  for (size_t i = 0; i < milliseconds.size(); ++i) {
    measurement.arrivals.push_back({static_cast<int64_t>(i), milliseconds[i] * kMillisecond});
  }
  return ArrivalSummary(rank, arrivals);
}

ArrivalSummary Merged(const std::vector<ArrivalSummary>& summaries) {
  ArrivalSummary merged;
  for (const ArrivalSummary& summary : summaries) merged.Merge(summary);
  return merged;
}

ArrivalStats Stats(const ArrivalSummary& summary, double iteration_seconds = 0.01) {
  ArrivalTracker tracker;
  tracker.Add(summary);
  const std::vector<ArrivalStats> stats = tracker.Finish(iteration_seconds);
  EXPECT_THAT(stats, SizeIs(1));
  return stats.empty() ? ArrivalStats() : stats[0];
}

TEST(Arrivals, TheLastRankIsNamedWithWhatTheOthersWait) {
  const ArrivalStats stats = Stats(Merged({Of(0, {1, 11, 21}), Of(1, {5, 15, 20}), Of(2, {2, 12, 23})}));
  EXPECT_EQ(stats.name(), "allreduce");
  EXPECT_EQ(stats.num_ranks(), 3);
  EXPECT_EQ(stats.num_intervals(), 3);
  ASSERT_THAT(stats.last(), SizeIs(2));
  EXPECT_EQ(stats.last(0).rank(), 1);
  EXPECT_EQ(stats.last(0).num_intervals(), 2);
  EXPECT_DOUBLE_EQ(stats.last(0).after_next(), 0.003);
  EXPECT_DOUBLE_EQ(stats.last(0).mean_wait_of_others(), 0.0035);
  EXPECT_EQ(stats.last(1).rank(), 2);
  EXPECT_DOUBLE_EQ(stats.last(1).after_next(), 0.002);
  EXPECT_DOUBLE_EQ(stats.mean_wait(), (4 + 3 + 4 + 3 + 2 + 3) * 1e-3 / 9);
  EXPECT_DOUBLE_EQ(stats.max_wait(), 0.004);
  ASSERT_TRUE(stats.has_hold_up());
  EXPECT_EQ(stats.hold_up().rank(), 1);
  EXPECT_DOUBLE_EQ(stats.hold_up().seconds_per_iteration(), 0.002);
  EXPECT_DOUBLE_EQ(stats.hold_up().share_of_iteration(), 0.2);
}

TEST(Arrivals, OrderAndGroupingOfMergesDoNotMatter) {
  const std::vector<ArrivalSummary> ranks = {Of(0, {1, 18}), Of(1, {5, 15}), Of(2, {5, 12}), Of(3, {0, 11})};
  const std::string expected = Merged(ranks).ToProto().SerializeAsString();
  EXPECT_EQ(Merged({ranks[3], ranks[1], ranks[0], ranks[2]}).ToProto().SerializeAsString(), expected);
  EXPECT_EQ(
      Merged({Merged({ranks[0], ranks[1]}), Merged({ranks[2], ranks[3]})}).ToProto().SerializeAsString(),
      expected);
  EXPECT_EQ(
      Merged({ranks[0], Merged({ranks[3], Merged({ranks[1], ranks[2]})})}).ToProto().SerializeAsString(),
      expected);
}

TEST(Arrivals, TravelAsTheyAre) {
  RankArrivals arrivals;
  arrivals.error_bound_nanoseconds = 70;
  arrivals.measurements = {{"a", {{3, 5}, {3, 9}, {4, 12}, {4, 13}, {4, 15}}}, {"b", {{4, 14}}}};
  const ArrivalSummary one(2, arrivals);
  for (const ArrivalSummary& summary : {one, Merged({one, ArrivalSummary(1, arrivals)})}) {
    const absl::StatusOr<ArrivalSummary> back = ArrivalSummary::FromProto(summary.ToProto());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->ToProto().SerializeAsString(), summary.ToProto().SerializeAsString());
  }
}

TEST(Arrivals, WhatIsCutOffIsRefused) {
  internal::ArrivalSummary proto = Of(0, {1, 2}).ToProto();
  proto.mutable_measurements(0)->mutable_last()->RemoveLast();
  EXPECT_TRUE(absl::IsInvalidArgument(ArrivalSummary::FromProto(proto).status()));
  proto = Of(0, {1, 2}).ToProto();
  proto.mutable_measurements(0)->set_num_ranks(1, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ArrivalSummary::FromProto(proto).status()));
}

TEST(Arrivals, IntervalsThatARankLacksDoNotCount) {
  const ArrivalStats stats = Stats(Merged({Of(0, {1, 11, 21}), Of(1, {5, 15})}));
  EXPECT_EQ(stats.num_intervals(), 2);
  EXPECT_EQ(stats.num_incomplete(), 1);
  EXPECT_EQ(stats.last_iteration(), 1);
}

TEST(Arrivals, NobodyHoldsUpWithinTheClocksErrorOrInTurnsOrForATrifle) {
  const std::vector<ArrivalSummary> ranks = {Of(0, {1, 11, 21, 31}), Of(1, {5, 15, 25, 35})};
  EXPECT_TRUE(Stats(Merged(ranks)).has_hold_up());
  // Two times are compared, each wrong by 2 ms at most.
  EXPECT_FALSE(Stats(Merged({ranks[0], Of(1, {5, 15, 25, 35}, 2 * kMillisecond)})).has_hold_up());
  EXPECT_DOUBLE_EQ(Stats(Merged({ranks[0], Of(1, {5}, 2 * kMillisecond)})).error_bound(), 0.004);
  EXPECT_FALSE(Stats(Merged(ranks), 1.0).has_hold_up());
  EXPECT_FALSE(
      Stats(Merged({Of(0, {5, 11, 21, 31}), Of(1, {1, 15, 21, 31}), Of(2, {1, 11, 25, 30})})).has_hold_up());
}

TEST(Arrivals, AddUpOverGathers) {
  ArrivalTracker tracker;
  tracker.Add(Merged({Of(0, {1}), Of(1, {3})}));
  tracker.Add(Merged({Of(0, {1}), Of(1, {5})}));
  const std::vector<ArrivalStats> stats = tracker.Finish(0.01);
  ASSERT_THAT(stats, SizeIs(1));
  EXPECT_EQ(stats[0].num_intervals(), 2);
  EXPECT_DOUBLE_EQ(stats[0].last(0).after_next(), 0.003);
}

TEST(Arrivals, OfOneRankSayNothing) {
  ArrivalTracker tracker;
  tracker.Add(Of(0, {1, 2}));
  EXPECT_THAT(tracker.Finish(0.01), ElementsAre());
}

}  // namespace
}  // namespace ott
