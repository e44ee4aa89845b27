#include "ott/questions/slow/merge_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/dist/stats/stats_message.pb.h"
#include "ott/questions/slow/straggler_tracker.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Statistics Repeated(double seconds, int count) {
  DurationStatistics statistics;
  for (int i = 0; i < count; ++i) statistics.AddSeconds(seconds);
  return statistics.ToProto();
}

// Returns what the stopwatch says of times that hardly vary.
SteadyTimeStats Steady(double seconds) {
  SteadyTimeStats time;
  time.set_seconds(seconds);
  time.set_standard_error(0.001 * seconds);
  time.set_degrees_of_freedom(5);
  return time;
}

constexpr int kIterations = 1000;

// A rank of 4 that measured kIterations; names ending in '*' are collective.
StopwatchStats Report(int rank, double iteration,
                      const std::vector<std::pair<std::string, double>>& measurements) {
  StopwatchStats report;
  report.set_rank(rank);
  report.set_host("node" + std::to_string(rank / 2));
  report.set_world_size(4);
  report.set_num_measured_iters(kIterations);
  *report.mutable_iteration() = Repeated(iteration, kIterations);
  double waiting = 0;
  for (auto [name, seconds] : measurements) {
    Measurement& measurement = *report.add_measurements();
    if (name.back() == '*') {
      name.pop_back();
      measurement.set_collective(true);
      waiting += seconds;
    } else {
      *measurement.mutable_own()->mutable_all() = Steady(seconds);
    }
    measurement.set_name(name);
    *measurement.mutable_per_iteration() = Repeated(seconds, kIterations);
  }
  report.mutable_own_work()->set_waiting_seconds(kIterations * waiting);
  *report.mutable_own_work()->mutable_time()->mutable_all() = Steady(iteration - waiting);
  return report;
}

// Rank `slow` computes for longer; all wait for it in the all-reduce, so all iterations take as long.
std::vector<StopwatchStats> TwelveRanks(int slow) {
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < 12; ++rank) {
    const double forward = rank == slow ? 0.018 : 0.010 + rank * 1e-5;
    reports.push_back(
        Report(rank, 0.030, {{"data", 0.002}, {"forward", forward}, {"allreduce*", 0.028 - forward}}));
    reports.back().set_world_size(12);
  }
  return reports;
}

// The rank's own time is that of the report of most iterations.
TEST(MergeStats, AddsUpTheReportsOfARestartedRank) {
  for (const bool longer_first : {false, true}) {
    for (const int without_own_work : {0, 1, 2}) {
      const bool both_know = without_own_work == 2;
      std::vector<StopwatchStats> reports = {Report(0, 0.010, {{"forward", 0.002}, {"allreduce*", 0.004}}),
                                             Report(0, 0.020, {{"forward", 0.004}, {"allreduce*", 0.004}})};
      reports[1].set_num_measured_iters(kIterations / 2);
      *reports[1].mutable_iteration() = Repeated(0.020, kIterations / 2);
      reports[1].mutable_own_work()->set_waiting_seconds(2);
      for (const int i : {0, 1}) {
        OwnWorkStats& own = *reports[i].mutable_own_work();
        own.set_num_watched_iters(reports[i].num_measured_iters());
        own.set_taken_seconds(1 + i);
        own.set_cpu_seconds(2 + 2 * i);
        reports[i].set_observer_thread_seconds(0.5 + i);
        OneTimeMeasurement& one_time = *reports[i].add_one_time();
        one_time.set_name(i == 0 ? "load" : "compile");
        one_time.set_seconds(3);
        Misuse& misuse = *reports[i].add_misuses();
        misuse.set_kind("End");
        misuse.set_count(1 + i);
      }
      if (!both_know) reports[without_own_work].clear_own_work();
      if (!longer_first) std::swap(reports[0], reports[1]);
      reports.push_back(Report(1, 0.010, {{"forward", 0.002}, {"allreduce*", 0.004}}));
      const ClusterStats stats = MergeStats(reports, 4);
      EXPECT_EQ(stats.ranks(0).num_measured_iters(), 1500);
      EXPECT_NEAR(stats.ranks(0).work_seconds(), (10 + 10 - (both_know ? 6 : 8)) / 1500.0, 1e-12);
      EXPECT_NEAR(stats.iteration().max().seconds(), 20 / 1500.0, 1e-9);
      EXPECT_NEAR(stats.measurements(0).max().seconds(), 6 / 1500.0, 1e-9);
      EXPECT_FALSE(stats.has_straggler());
      EXPECT_EQ(stats.has_detectable(), both_know);
      EXPECT_EQ(stats.one_time_size(), 2);
      EXPECT_EQ(stats.misuses(0).count(), 3);
      EXPECT_EQ(stats.measurements(2).name(), kObserverThreads);
      EXPECT_NEAR(stats.measurements(2).max().seconds(), 2 / 1500.0, 1e-9);
      ASSERT_EQ(stats.cpu_taken().num_taken(), both_know ? 1 : 0);
      if (both_know) {
        EXPECT_NEAR(stats.cpu_taken().ranks(0).share(), 3.0 / 14, 1e-9);
      }
      EXPECT_THAT(stats.notes(), testing::Contains("rank 0: 2 reports added up"));
    }
  }
}

TEST(MergeStats, OfARestartedRankWhatAnyReportSaysOfAMeasurementCounts) {
  for (const bool flags_of_first : {false, true}) {
    std::vector<StopwatchStats> reports;
    for (const int rank : {0, 1, 1, 2, 3}) {
      const double seconds = rank == 1 ? 0.004 : 0.002;
      reports.push_back(
          Report(rank, 0.030,
                 {{"a", seconds}, {"b", seconds}, {"c", seconds}, {"allreduce*", 0.029 - 3 * seconds}}));
      // Nothing has half of what rank 1 takes longer; only one report knows what is inside of nothing else.
      const bool knows = reports.size() == (flags_of_first ? 2 : 3);
      for (Measurement& measurement : *reports.back().mutable_measurements())
        measurement.set_outermost(knows);
      reports.back().mutable_measurements(3)->set_collective(knows);
    }
    const ClusterStats stats = MergeStats(reports, 4);
    EXPECT_TRUE(stats.measurements(3).collective());
    EXPECT_EQ(stats.straggler().rank(), 1);
    EXPECT_EQ(stats.straggler().host(), "node0");
    EXPECT_EQ(stats.straggler().parts_size(), 3) << stats.straggler().DebugString();
  }
}

StopwatchStats NegativeReport(int rank) {
  StopwatchStats report = Report(rank, 0.01, {});
  report.mutable_iteration()->set_total(-1);
  report.mutable_iteration()->clear_exact();
  return report;
}

TEST(MergeStats, OfARestartedRankTheReportsCountThatCanBeUsed) {
  for (const bool is_last : {false, true}) {
    std::vector<StopwatchStats> reports = {Report(0, 0.010, {{"forward", 0.002}}), NegativeReport(0)};
    if (!is_last) std::swap(reports[0], reports[1]);
    const ClusterStats stats = MergeStats(reports, 4);
    EXPECT_EQ(stats.ranks(0).num_measured_iters(), kIterations);
    EXPECT_NEAR(stats.iteration().mean(), 0.010, 1e-9);
    EXPECT_THAT(stats.notes(), ElementsAre(HasSubstr("report left out")));
  }
}

TEST(MergeStats, LeavesOutWhatCannotBeAndSaysSo) {
  StopwatchStats no_iterations = Report(2, 0.01, {{"forward", 0.001}});
  no_iterations.set_num_measured_iters(0);
  no_iterations.set_world_size(5);
  StopwatchStats of_any_world = Report(0, 0.01, {{"forward", 0.002}});
  of_any_world.set_world_size(0);
  const ClusterStats stats = MergeStats(
      {Report(4, 0.01, {}), no_iterations, NegativeReport(1), of_any_world, Report(-1, 0.01, {})}, 4);
  EXPECT_THAT(stats.missing_ranks(), ElementsAre(1, 3));
  EXPECT_THAT(stats.notes(), ElementsAre("rank -1 (node0): left out, the world has 4 ranks",
                                         HasSubstr("rank 1 (node0): report left out"),
                                         "rank 2 (node1): says the world has 5 ranks, not 4",
                                         "rank 4 (node2): left out, the world has 4 ranks",
                                         "rank 2: no iteration measured yet"));
  EXPECT_EQ(stats.measurements(0).num_ranks(), 1);
  EXPECT_EQ(stats.ranks(0).host(), "node0");
  EXPECT_THAT(MergeStats({}, 3).missing_ranks(), ElementsAre(0, 1, 2));
}

TEST(MergeStats, LeavesOutARankWhoseTimesAreNone) {
  for (const double damaged : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    for (const auto set : {&OwnWorkStats::set_waiting_seconds, &OwnWorkStats::set_cpu_seconds,
                           &OwnWorkStats::set_taken_seconds}) {
      std::vector<StopwatchStats> reports = TwelveRanks(3);
      reports[3].mutable_own_work()->set_num_watched_iters(kIterations);
      (reports[3].mutable_own_work()->*set)(damaged);
      EXPECT_THAT(MergeStats(reports, 12).missing_ranks(), ElementsAre(3)) << damaged;
    }
  }
}

ClusterSummary Summary(const std::vector<StopwatchStats>& reports) {
  ClusterSummary summary;
  for (const StopwatchStats& report : reports) {
    internal::RankReport of_rank;
    *of_rank.mutable_stats() = report;
    summary.Merge(*ClusterSummary::OfRank(of_rank));
  }
  return summary;
}

// A window of which it cannot be told who is slow neither ends a row nor lengthens it.
TEST(StragglerTracker, CountsWindowsInARowInWhichTheSameRankIsSlow) {
  std::mt19937 random(1);
  StragglerTracker tracker;
  std::optional<int> slow;
  std::map<int, int> num_slowest;
  int64_t since = 0;
  int in_a_row = 0;
  for (int window = 0; window < 60; ++window) {
    const int kind = static_cast<int>(random() % 8);  // 0: nobody, 1: cannot be told, or a rank
    const int rank = kind < 2 ? -1 : kind == 2 ? 3 : 2;
    std::vector<StopwatchStats> reports = TwelveRanks(rank);
    const int slowest = rank >= 0 ? rank : static_cast<int>(random() % 12);
    for (StopwatchStats& report : reports) {
      if (kind == 1) report.mutable_own_work()->clear_time();
      report.mutable_own_work()->set_waiting_seconds(0.01 * (report.rank() == slowest ? 1 : 9));
    }
    const ClusterSummary summary = Summary(reports);
    ++num_slowest[slowest];
    if (kind == 0) slow.reset();
    if (kind == 0 || (rank >= 0 && slow != rank)) in_a_row = 0;
    if (rank >= 0) {
      if (in_a_row++ == 0) since = 100 * window;
      slow = rank;
    }
    const StragglerHistory history = tracker.Add(summary, 100 * window);
    EXPECT_EQ(history.has_straggler(), rank >= 0);
    EXPECT_EQ(history.num_intervals(), in_a_row) << window;
    EXPECT_EQ(history.persistent(), in_a_row >= kPersistentIntervals);
    if (rank >= 0) {
      EXPECT_EQ(history.straggler().rank(), rank);
      EXPECT_EQ(history.since_iteration(), since) << window;
    }
    EXPECT_EQ(history.num_all_intervals(), window + 1);
    // Eight are listed: those that were slowest most often, and of these the lowest ranks.
    std::vector<std::pair<int, int>> expected, listed;
    for (const auto& [of, count] : num_slowest) expected.emplace_back(-count, of);
    std::sort(expected.begin(), expected.end());
    expected.resize(std::min<size_t>(expected.size(), 8));
    for (const SlowestCount& count : history.slowest())
      listed.emplace_back(-count.num_intervals(), count.rank());
    EXPECT_EQ(listed, expected);
    // A gather at the end of a run may come right after another one: nothing was measured since.
    EXPECT_EQ(tracker.Add(ClusterSummary(), 100 * window + 50).DebugString(), history.DebugString());
  }
}

TEST(StragglerTracker, CountsNobodyAsSlowestOfOneRank) {
  const std::vector<StopwatchStats> ranks = TwelveRanks(0);
  EXPECT_EQ(StragglerTracker().Add(Summary({ranks[0]}), 0).num_all_intervals(), 0);
  EXPECT_EQ(StragglerTracker().Add(Summary({ranks[0], ranks[1]}), 0).num_all_intervals(), 1);
}

}  // namespace
}  // namespace ott
