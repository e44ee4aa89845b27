#include "ott/questions/slow/merge_stats.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/field_comparator.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/core/stopwatch/stats_for_test.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/dist/stats/stats_message.pb.h"
#include "ott/questions/slow/straggler_tracker.h"

namespace ott {
namespace {

using google::protobuf::util::DefaultFieldComparator;
using google::protobuf::util::MessageDifferencer;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Statistics Of(const std::vector<double>& seconds) {
  DurationStatistics statistics;
  for (const double each : seconds) statistics.AddSeconds(each);
  return statistics.ToProto();
}

SteadyTimeStats Steady(double seconds) { return SteadyForTest(seconds, 0.001 * seconds); }

constexpr int kIterations = 1000;

// A rank of 4 that measured kIterations; names ending in '*' are collective.
StopwatchStats Report(int rank, double iteration,
                      const std::vector<std::pair<std::string, double>>& measurements) {
  StopwatchStats report;
  report.set_rank(rank);
  report.set_host("node" + std::to_string(rank / 2));
  report.set_world_size(4);
  report.set_num_measured_iters(kIterations);
  *report.mutable_iteration() = Of(std::vector<double>(kIterations, iteration));
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
    *measurement.mutable_per_iteration() = Of(std::vector<double>(kIterations, seconds));
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

StopwatchStats NegativeReport(int rank) {
  StopwatchStats report = Report(rank, 0.01, {});
  report.mutable_iteration()->set_total(-1);
  report.mutable_iteration()->clear_exact();
  return report;
}

// Its reports say together what one of all its iterations would; its own times are those of the longest.
TEST(MergeStats, ARankThatWasRestartedIsOneThatWentOn) {
  constexpr int kEnd = 40;
  std::mt19937 random(1);
  const auto any = [&] { return static_cast<int>(random() % kEnd); };
  MessageDifferencer differencer;
  DefaultFieldComparator comparator;
  comparator.set_float_comparison(DefaultFieldComparator::APPROXIMATE);
  comparator.SetDefaultFractionAndMargin(1e-9, 1e-12);
  differencer.set_field_comparator(&comparator);
  differencer.set_repeated_field_comparison(MessageDifferencer::AS_SET);
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  for (int trial = 0; trial < 100; ++trial) {
    // Each is known of one iteration alone, or begins or ends with it.
    const int begin_of_b = any(), end_of_c = any(), collective = any(), outermost = any(), observed = any(),
              unknown = random() % 2 == 0 ? any() : kEnd;
    std::set<int> cuts = {0, any(), random() % 2 == 0 ? any() : 0, kEnd};
    int longest = 0;
    for (auto cut = cuts.begin(); *cut < kEnd; ++cut) longest = std::max(longest, *std::next(cut) - *cut);
    const auto report = [&](int begin, int end) {
      const auto has = [&](int iteration) { return begin <= iteration && iteration < end; };
      // Slow, or like the others but for more time on a CPU.
      const double own = end - begin < longest ? 9 : trial % 2 == 0 ? 0.05 : 0.0198;
      std::vector<double> iterations;
      StopwatchStats stats = Report(0, 0, {});
      OwnWorkStats& work = *stats.mutable_own_work();
      work.Clear();
      *work.mutable_time()->mutable_all() = Steady(own);
      stats.set_num_measured_iters(end - begin);
      for (int i = begin; i < end; ++i) {
        iterations.push_back(0.02 + 0.001 * (i % 7));
        work.set_waiting_seconds(work.waiting_seconds() + 0.001 * (i % 3));
        work.set_num_watched_iters(work.num_watched_iters() + i % 2);
        work.set_cpu_seconds(work.cpu_seconds() + 0.0205 * (i % 2));
        work.set_taken_seconds(work.taken_seconds() + 0.001 * (i % 5));
        if (i >= observed) stats.set_observer_thread_seconds(stats.observer_thread_seconds() + 0.125);
        if (i % 8 > 0) continue;
        stats.add_one_time()->set_name(std::to_string(i));
        stats.add_misuses()->set_kind("End");
        stats.mutable_misuses()->rbegin()->set_count(i);
      }
      *stats.mutable_iteration() = Of(iterations);
      for (const auto& [name, from, to] :
           {std::tuple("a", 0, kEnd), {"b", begin_of_b, kEnd}, {"c", 0, end_of_c}}) {
        std::vector<double> seconds, intervals;
        for (int i = std::max(begin, from); i < std::min(end, to); ++i) {
          seconds.push_back(0.001 + 0.0001 * (i % 5));
          intervals.insert(intervals.end(), {seconds.back() / 3, seconds.back() * 2 / 3});
        }
        if (seconds.empty()) continue;
        Measurement& measurement = *stats.add_measurements();
        measurement.set_name(name);
        measurement.set_collective(has(collective) && from <= collective && collective < to);
        measurement.set_outermost(has(outermost) && from <= outermost && outermost < to);
        *measurement.mutable_per_iteration() = Of(seconds);
        *measurement.mutable_per_interval() = Of(intervals);
        if (*name == 'a') *measurement.mutable_own()->mutable_all() = Steady(own);
      }
      if (has(unknown)) stats.clear_own_work();
      return stats;
    };
    std::vector<StopwatchStats> parts, whole = {report(0, kEnd)};
    for (auto cut = cuts.begin(); *cut < kEnd; ++cut) parts.push_back(report(*cut, *std::next(cut)));
    const std::string added = absl::StrCat("rank 0: ", parts.size(), " reports added up");
    const bool is_added = parts.size() > 1, has_bad = random() % 3 == 0;
    if (has_bad) parts.push_back(NegativeReport(0));
    std::shuffle(parts.begin(), parts.end(), random);
    for (const int rank : {1, 2, 3}) {
      for (auto* const reports : {&parts, &whole})
        reports->push_back(Report(rank, 0.02, {{"a", 0.001}, {"allreduce*", 0.001}}));
    }
    ClusterStats found = MergeStats(parts, 4), expected = MergeStats(whole, 4);
    EXPECT_THAT(found.notes(), Contains(added).Times(is_added ? 1 : 0));
    EXPECT_THAT(found.notes(), Contains(HasSubstr("report left out")).Times(has_bad ? 1 : 0));
    found.clear_notes();
    expected.clear_notes();
    difference.clear();
    EXPECT_TRUE(differencer.Compare(expected, found)) << trial << ": " << difference;
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
    for (const SlowestCount& count : history.slowest()) {
      listed.emplace_back(-count.num_intervals(), count.rank());
      EXPECT_EQ(count.host(), absl::StrCat("node", count.rank() / 2));
    }
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
