#include "ott/run/gather/stats_gatherer.h"

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/stopwatch/own_time.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/dist/comm/simulated_communicator.h"
#include "ott/questions/slow/merge_stats.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A rank's stopwatch: each iteration computes for `work` seconds and waits for the slowest.
class Rank {
 public:
  void Iterate(int count, double work, double slowest) {
    for (int i = 0; i < count; ++i) {
      iteration_.AddSeconds(slowest + 0.001);
      forward_.AddSeconds(work);
      own_.Add(work);
      allreduce_.AddSeconds(slowest - work + 0.001);
    }
  }

  void CloseWindow() { own_.CloseWindow(); }

  StopwatchStats Stats() const {
    StopwatchStats stats;
    stats.set_start_iteration(1000);
    OwnWorkStats& work = *stats.mutable_own_work();
    work.set_waiting_seconds(allreduce_.total());
    const OwnTime own = own_.Read();
    for (const auto& [from, to] : {std::pair(&own.all, work.mutable_time()->mutable_all()),
                                   std::pair(&own.window, work.mutable_time()->mutable_window())}) {
      to->set_seconds(from->value_or(SteadyTime()).seconds);
      to->set_degrees_of_freedom(from->has_value() ? 5 : 0);
    }
    stats.set_num_measured_iters(iteration_.count());
    if (num_refused > 0) {
      stats.add_misuses()->set_kind("End(\"forward\") without Start");
      stats.mutable_misuses(0)->set_count(num_refused);
    }
    *stats.mutable_iteration() = iteration_.ToProto();
    for (const auto& [name, statistics] :
         {std::pair("forward", &forward_), std::pair("allreduce", &allreduce_)}) {
      Measurement& measurement = *stats.add_measurements();
      measurement.set_name(name);
      measurement.set_collective(statistics == &allreduce_);
      *measurement.mutable_per_interval() = statistics->ToProto();
      *measurement.mutable_per_iteration() = statistics->ToProto();
      if (!measurement.collective()) *measurement.mutable_own() = work.time();
    }
    return stats;
  }

  int num_refused = 0;

 private:
  DurationStatistics iteration_;
  DurationStatistics forward_;
  DurationStatistics allreduce_;
  OwnTimeRecorder own_;
};

// Ranks that gather in one thread: those below first, so that nobody has to wait.
class World {
 public:
  World(int size, int fan_out, const std::function<std::vector<GroupLabel>(int)>& groups_of = {})
      : fan_out_(fan_out), size_(size), ranks_(size), arrivals_(size) {
    std::vector<std::string> hosts;
    for (int rank = 0; rank < size; ++rank) hosts.push_back("node" + std::to_string(rank / 8));
    for (auto& communicator : CreateSimulatedCommunicators(hosts)) {
      StatsGathererOptions options;
      options.fan_out = fan_out;
      if (groups_of) options.groups = groups_of(static_cast<int>(gatherers_.size()));
      gatherers_.push_back(std::make_unique<StatsGatherer>(std::move(communicator), options));
    }
  }

  Rank& operator[](int rank) { return ranks_[rank]; }
  StatsGatherer& gatherer(int rank) { return *gatherers_[rank]; }
  // The arrivals of the next gather.
  RankArrivals& arrivals(int rank) { return arrivals_[rank]; }

  void Iterate(int count, const std::function<double(int)>& work_of) {
    double slowest = 0;
    for (int rank = 0; rank < size_; ++rank) slowest = std::max(slowest, work_of(rank));
    for (int rank = 0; rank < size_; ++rank) ranks_[rank].Iterate(count, work_of(rank), slowest);
  }

  // Those that `takes_part` says; rank 0's result.
  ClusterStats Gather(const std::function<bool(int)>& takes_part = [](int) { return true; }) {
    return GatherBelow(0, takes_part);
  }

 private:
  ClusterStats GatherBelow(int rank, const std::function<bool(int)>& takes_part) {
    for (int child = rank * fan_out_ + 1; child <= rank * fan_out_ + fan_out_ && child < size_; ++child) {
      GatherBelow(child, takes_part);
    }
    if (!takes_part(rank)) return ClusterStats();
    ranks_[rank].CloseWindow();
    const Deadline deadline = Deadline::After(std::chrono::milliseconds(5));
    return gatherers_[rank]->Gather(ranks_[rank].Stats(), deadline, arrivals_[rank]).value();
  }

  const int fan_out_;
  const int size_;
  std::vector<Rank> ranks_;
  std::vector<RankArrivals> arrivals_;
  std::vector<std::unique_ptr<StatsGatherer>> gatherers_;
};

TEST(StatsGatherer, MergesAlongTheTreeWhatMergesAtOnce) {
  constexpr int kSize = 40;
  const auto work_of = [](int rank) { return rank == 17 ? 0.020 : 0.010 + rank * 1e-6; };
  World world(kSize, 3);
  world.Iterate(50, work_of);
  world[30].num_refused = 3;
  ClusterStats tree = world.Gather();

  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < kSize; ++rank) {
    reports.push_back(world[rank].Stats());
    reports.back().set_rank(rank);
    reports.back().set_host("node" + std::to_string(rank / 8));
  }
  EXPECT_TRUE(tree.has_history());
  tree.clear_history();
  EXPECT_EQ(tree.DebugString(), MergeStats(reports, kSize).DebugString());
  EXPECT_EQ(tree.misuses(0).ranks(), "rank 30");
  EXPECT_EQ(tree.straggler().rank(), 17);
  EXPECT_EQ(tree.straggler().measurement(), "forward");
  EXPECT_EQ(tree.groups_size(), 5);
}

// Rank 11 is late for the loss in the last iterations, and all do as much work.
TEST(StatsGatherer, NamesWhoHoldsUpTheOthersAndALastGatherWithoutIterationsSaysSoToo) {
  constexpr int kSize = 15, kIterations = 200;
  World world(kSize, 2);
  ClusterStats stats;
  for (int gather = 0; gather < 10; ++gather) {
    world.Iterate(kIterations, [](int) { return 0.001; });
    for (int rank = 0; rank < kSize; ++rank) {
      world.arrivals(rank).error_bound_nanoseconds = rank * 100;
      world.arrivals(rank).measurements.clear();
      for (const char* const name : {"gradients", "loss"}) {
        StopwatchArrivals& arrivals = world.arrivals(rank).measurements.emplace_back();
        arrivals.name = name;
        const int64_t late = gather == 9 && rank == 11 && arrivals.name == "loss" ? 3'000'000 : 0;
        for (int i = gather * kIterations; i < (gather + 1) * kIterations; ++i)
          arrivals.arrivals.push_back({i, late + i * int64_t{20'000'000}});
      }
    }
    stats = world.Gather();
  }
  EXPECT_FALSE(stats.has_straggler());
  ASSERT_EQ(stats.arrivals_size(), 2);
  EXPECT_FALSE(stats.arrivals(0).has_hold_up());
  const ArrivalStats& loss = stats.arrivals(1);
  EXPECT_EQ(loss.name(), "loss");
  EXPECT_EQ(loss.num_ranks(), kSize);
  EXPECT_NEAR(loss.error_bound(), 2.8e-6, 1e-12);
  EXPECT_EQ(loss.last(0).host(), "node1");
  ASSERT_TRUE(loss.hold_up().recent());
  EXPECT_EQ(loss.hold_up().rank(), 11);
  EXPECT_EQ(loss.hold_up().host(), "node1");
  EXPECT_NEAR(loss.hold_up().seconds_per_iteration(), 0.003, 1e-9);
  EXPECT_GT(loss.hold_up().share_of_iteration(), 0.2);
  for (int rank = 0; rank < kSize; ++rank) world.arrivals(rank).measurements.clear();
  EXPECT_EQ(world.Gather().arrivals(1).hold_up().DebugString(), loss.hold_up().DebugString());
}

TEST(StatsGatherer, RanksOfDifferentGroupsAreNotMatched) {
  // Ranks 0 and 1 do stage 0, 2 and 3 stage 1, which is heavier and comes later; nobody is slow.
  std::vector<StatsGathererOptions> options(4);
  for (int rank = 0; rank < 4; ++rank) {
    options[rank].like_work = rank / 2 == 0 ? "stage 0" : "stage 1";
    options[rank].collective_groups = {{"allreduce", options[rank].like_work}};
  }
  for (const bool grouped : {true, false}) {
    std::vector<std::unique_ptr<StatsGatherer>> gatherers;
    int next = 0;
    for (auto& communicator : CreateSimulatedCommunicators({"a", "a", "a", "a"})) {
      gatherers.push_back(std::make_unique<StatsGatherer>(
          std::move(communicator), grouped ? options[next++] : StatsGathererOptions()));
    }
    ClusterStats stats;
    for (const int rank : {3, 2, 1, 0}) {
      Rank measured;
      measured.Iterate(50, rank / 2 == 0 ? 0.010 : 0.020 - (rank == 3 ? 0.008 : 0), 0.020);
      RankArrivals arrivals;
      arrivals.measurements.emplace_back().name = "allreduce";
      for (int i = 0; i < 50; ++i) {
        arrivals.measurements[0].arrivals.push_back({i, i * int64_t{30'000'000} + (rank / 2) * 5'000'000});
      }
      stats = gatherers[rank]->Gather(measured.Stats(), Deadline::Now(), arrivals).value();
    }
    // Rank 2 takes longer than rank 3; both are of the heavier stage.
    EXPECT_EQ(stats.straggler().rank(), 2);
    EXPECT_EQ(stats.arrivals_size(), grouped ? 2 : 1);
    EXPECT_NEAR(stats.arrivals(0).mean_wait(), grouped ? 0 : 0.0025, 1e-9);
    if (grouped) {
      EXPECT_EQ(stats.arrivals(1).group(), "stage 1");
      EXPECT_NEAR(stats.straggler().median_work_seconds(), 0.012, 1e-9);
    }
  }
}

TEST(StatsGatherer, NamesTheMissingRankAndThoseBehindIt) {
  World world(8, 2);
  world.Iterate(10, [](int) { return 0.01; });
  const ClusterStats stats = world.Gather([](int rank) { return rank != 1; });
  EXPECT_THAT(stats.missing_ranks(), ElementsAre(1, 3, 4, 7));
  EXPECT_THAT(stats.notes(), ElementsAre("ranks 3, 4, 7 report through rank 1, which is silent"));
}

TEST(StatsGatherer, TakesLateDataInTheNextRoundAndSaysSo) {
  World world(3, 32);
  world.Iterate(50, [](int rank) { return rank == 2 ? 0.02 : 0.01; });
  EXPECT_THAT(world.Gather([](int rank) { return rank != 2; }).missing_ranks(), ElementsAre(2));
  // Rank 2 says what it should have said by now, which is of the interval before.
  ASSERT_TRUE(world.gatherer(2).Gather(world[2].Stats(), Deadline::Now()).ok());
  world.Iterate(50, [](int) { return 0.01; });
  const ClusterStats late = world.Gather([](int rank) { return rank != 2; });
  EXPECT_THAT(late.missing_ranks(), IsEmpty());
  EXPECT_THAT(late.late_ranks(), ElementsAre(2));
  EXPECT_EQ(late.min_measured_iters(), 50);
  EXPECT_EQ(late.max_measured_iters(), 100);
  EXPECT_FALSE(late.history().has_straggler());

  ASSERT_TRUE(world.gatherer(2).Gather(world[2].Stats(), Deadline::Now()).ok());
  const ClusterStats caught_up = world.Gather();
  EXPECT_THAT(caught_up.late_ranks(), IsEmpty());
  EXPECT_EQ(caught_up.min_measured_iters(), 100);
}

TEST(StatsGatherer, WaitsForASilentRankOnlyOnce) {
  World world(2, 32);
  world.Iterate(10, [](int) { return 0.01; });
  const auto gather = [&] {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(
        world.gatherer(0).Gather(world[0].Stats(), Deadline::After(std::chrono::milliseconds(200))).ok());
    return std::chrono::steady_clock::now() - start;
  };
  EXPECT_GE(gather(), std::chrono::milliseconds(200));
  EXPECT_LT(gather(), std::chrono::milliseconds(200));
}

TEST(StatsGatherer, FollowsAStragglerFromIntervalToInterval) {
  World world(4, 32);
  const auto only = [](int slow) { return [slow](int rank) { return rank == slow ? 0.02 : 0.01; }; };
  world.Iterate(100, [](int rank) { return 0.01 + 1e-6 * rank; });
  EXPECT_FALSE(world.Gather().history().has_straggler());

  // Hidden in the sums since the start at first, not in those of the interval.
  world.Iterate(50, only(2));
  StragglerHistory history = world.Gather().history();
  EXPECT_EQ(history.straggler().rank(), 2);
  EXPECT_EQ(history.num_iterations(), 50);
  EXPECT_FALSE(history.persistent());
  for (const int iterations : {50, 5, 45}) {  // 5 are too few to say anything, and no reason to forget
    world.Iterate(iterations, only(2));
    history = world.Gather().history();
  }
  EXPECT_TRUE(history.persistent());
  EXPECT_EQ(history.num_intervals(), 3);
  EXPECT_EQ(history.since_iteration(), 1100);
  // As at the end of a run.
  EXPECT_EQ(world.Gather().history().DebugString(), history.DebugString());
}

TEST(StatsGatherer, RefusesStatisticsThatNoStopwatchGives) {
  World world(1, 32);
  StopwatchStats stats;
  stats.set_num_measured_iters(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(world.gatherer(0).Gather(stats, Deadline::Now()).status()));
}

TEST(StatsGatherer, LeavesOutAndNotesStatisticsThatNoStopwatchGives) {
  World world(2, 32);
  StopwatchStats stats;
  stats.set_num_measured_iters(-1);
  ASSERT_TRUE(world.gatherer(1).Gather(stats, Deadline::Now()).ok());
  const ClusterStats gathered = world.gatherer(0).Gather(world[0].Stats(), Deadline::Now()).value();
  EXPECT_THAT(gathered.missing_ranks(), ElementsAre(1));
  EXPECT_THAT(gathered.notes(), testing::Contains("rank 1: -1 measured iterations"));
}

TEST(StatsGatherer, WhatGrowsWithTheRunStaysWhereItWasMeasured) {
  auto ranks = CreateSimulatedCommunicators({"node0", "node0"});
  StatsGatherer root(std::move(ranks[0])), leaf(std::move(ranks[1]));
  Rank rank;
  rank.Iterate(1000, 0.010, 0.010);
  StopwatchStats stats = rank.Stats();
  for (int i = 0; i < 1000; ++i) {
    stats.mutable_iteration_series()->add_seconds(0.010f);
    for (Measurement& measurement : *stats.mutable_measurements()) {
      measurement.mutable_series()->add_seconds(0.005f);
    }
    stats.add_scopes()->set_name("forward");
  }
  ASSERT_TRUE(leaf.Gather(stats, Deadline::Now()).ok());
  ASSERT_TRUE(root.Gather(stats, Deadline::Now()).ok());
  EXPECT_LT(root.num_bytes_received(), 500);
}

TEST(StatsGatherer, ComparesGroupsOfACoordinate) {
  World world(8, 2, [](int rank) {
    return std::vector<GroupLabel>{{"pipeline", std::to_string(rank % 2)}, {"rank", std::to_string(rank)}};
  });
  world.Iterate(10, [](int rank) { return rank % 2 == 0 ? 0.010 : 0.030; });
  const ClusterStats stats = world.Gather();
  ASSERT_EQ(stats.groups_size(), 2 + 8);  // all on one host, which is no group then
  EXPECT_EQ(stats.groups(1).dimension(), "pipeline");
  EXPECT_EQ(stats.groups(1).value(), "1");
  EXPECT_EQ(stats.groups(1).num_ranks(), 4);
  EXPECT_NEAR(stats.groups(1).mean_work_seconds(), 0.030, 1e-9);
  EXPECT_NEAR(stats.groups(1).slower_by(), 0.5, 1e-9);
}

TEST(StatsGatherer, AReportOfManyRanksListsNeitherEachNorAllGroups) {
  World world(300, 8, [](int rank) { return std::vector<GroupLabel>{{"rank", std::to_string(rank)}}; });
  world.Iterate(1, [](int) { return 0.010; });
  const ClusterStats stats = world.Gather();
  EXPECT_EQ(stats.num_ranks(), 300);
  EXPECT_THAT(stats.missing_ranks(), IsEmpty());
  EXPECT_EQ(stats.ranks_size(), 0);
  EXPECT_EQ(stats.groups_size(), 38);  // hosts
}

}  // namespace
}  // namespace ott
