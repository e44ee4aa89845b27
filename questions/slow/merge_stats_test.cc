#include "ott/questions/slow/merge_stats.h"

#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/steady_time.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/dist/stats/stats_message.pb.h"
#include "ott/questions/slow/cluster_table.h"
#include "ott/questions/slow/straggler_tracker.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

// Sets them as far as they follow from the measurements, all of them on a CPU.
void SetOwnTimes(StopwatchStats& report) {
  double waiting = 0;
  for (Measurement& measurement : *report.mutable_measurements()) {
    if (measurement.collective()) {
      waiting += measurement.per_iteration().mean();
    } else {
      *measurement.mutable_own()->mutable_all() = Steady(measurement.per_iteration().mean());
    }
  }
  report.mutable_own_work()->set_waiting_seconds(waiting * static_cast<double>(report.num_measured_iters()));
  *report.mutable_own_work()->mutable_time()->mutable_all() = Steady(report.iteration().mean() - waiting);
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
  for (auto [name, seconds] : measurements) {
    Measurement& measurement = *report.add_measurements();
    if (name.back() == '*') {
      name.pop_back();
      measurement.set_collective(true);
    }
    measurement.set_name(name);
    *measurement.mutable_per_iteration() = Repeated(seconds, kIterations);
  }
  SetOwnTimes(report);
  return report;
}

// Rank `slow` computes for longer; all wait for it in the all-reduce, so all iterations take as long.
std::vector<StopwatchStats> FourRanks(int slow, double slow_forward) {
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < 4; ++rank) {
    const double forward = rank == slow ? slow_forward : 0.010 + rank * 1e-5;
    reports.push_back(
        Report(rank, 0.030, {{"data", 0.002}, {"forward", forward}, {"allreduce*", 0.028 - forward}}));
  }
  return reports;
}

TEST(MergeStats, NamesTheStragglerThatItselfWaitsLeast) {
  const ClusterStats stats = MergeStats(FourRanks(2, 0.018), 4);
  EXPECT_EQ(stats.measurements(2).min().rank(), 2);  // in the all-reduce
  ASSERT_TRUE(stats.has_straggler());
  EXPECT_EQ(stats.straggler().rank(), 2);
  EXPECT_EQ(stats.straggler().host(), "node1");
  EXPECT_EQ(stats.straggler().measurement(), "forward");
  EXPECT_NEAR(stats.straggler().measurement_excess_seconds(), 0.008, 1e-4);
  EXPECT_NEAR(stats.straggler().work_seconds(), 0.020, 1e-9);
  EXPECT_NEAR(stats.straggler().slower_by(), 2.0 / 3, 0.02);
  EXPECT_FALSE(stats.straggler().has_since_iteration());
  EXPECT_FALSE(stats.straggler().has_until_iteration());
}

TEST(MergeStats, SaysInWhichIterationsARankWasSlow) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 1e-5);
  for (const auto& [begin, end] : {std::pair(0, kIterations), {400, kIterations}, {0, 600}, {300, 700}}) {
    std::vector<StopwatchStats> reports = FourRanks(-1, 0);
    for (StopwatchStats& report : reports) {
      SteadyTimeRecorder recorder;
      for (int i = 0; i < kIterations; ++i) {
        recorder.Add(0.012 + noise(random) + (report.rank() == 2 && i >= begin && i < end ? 0.008 : 0));
      }
      const SteadyTime time = *recorder.Finish();
      SteadyTimeStats& all = *report.mutable_own_work()->mutable_time()->mutable_all();
      all.set_seconds(time.seconds);
      all.set_standard_error(time.standard_error);
      all.set_degrees_of_freedom(time.degrees_of_freedom);
      all.set_count(time.count);
      all.set_block_iterations(time.block_iterations);
      *all.mutable_block() = {time.blocks.begin(), time.blocks.begin() + time.num_blocks};
    }
    const Straggler straggler = MergeStats(reports, 4).straggler();
    EXPECT_EQ(straggler.rank(), 2);
    EXPECT_EQ(straggler.has_since_iteration(), begin > 0) << begin << " to " << end;
    EXPECT_EQ(straggler.has_until_iteration(), end < kIterations) << begin << " to " << end;
    EXPECT_NEAR(static_cast<double>(straggler.since_iteration()), begin, 80);
    if (end < kIterations) {
      EXPECT_NEAR(static_cast<double>(straggler.until_iteration()), end, 80);
    }
    EXPECT_NEAR(straggler.work_seconds() - straggler.median_work_seconds(), 0.008, 0.001);
  }
}

TEST(MergeStats, WhatIsMeasuredInSomeIterationsStandsForAll) {
  for (const bool sampled : {true, false}) {
    std::vector<StopwatchStats> reports = FourRanks(2, 0.018);
    for (StopwatchStats& report : reports) {
      Measurement& measurement = *report.add_measurements();
      measurement.set_name("module h.2");
      measurement.set_sampled(sampled);
      const double seconds = report.rank() == 2 ? 0.012 : 0.004;
      *measurement.mutable_per_iteration() = Repeated(seconds, kIterations / 10);
      *measurement.mutable_own()->mutable_all() = Steady(seconds);
    }
    const ClusterStats stats = MergeStats(reports, 4);
    EXPECT_EQ(stats.straggler().measurement(), sampled ? "module h.2" : "forward");
    EXPECT_EQ(stats.measurements(3).sampled(), sampled);
    EXPECT_NEAR(stats.measurements(3).max().seconds(), sampled ? 0.012 : 0.0012, 1e-12);
  }
}

TEST(MergeStats, NamesNobodyWhereNobodyIsSlow) {
  EXPECT_FALSE(MergeStats(FourRanks(2, 0.0105), 4).has_straggler());
}

TEST(MergeStats, ScatterAmongTheOthersRaisesTheThreshold) {
  std::vector<StopwatchStats> reports;
  for (const double work : {0.010, 0.014, 0.018, 0.020}) {
    reports.push_back(
        Report(static_cast<int>(reports.size()), 0.030, {{"forward", work}, {"allreduce*", 0.030 - work}}));
  }
  EXPECT_FALSE(MergeStats(reports, 4).has_straggler());
}

TEST(MergeStats, NamesTheSlowerOfTwoRanks) {
  const ClusterStats stats = MergeStats({Report(0, 0.02, {{"forward", 0.010}, {"allreduce*", 0.010}}),
                                         Report(1, 0.02, {{"forward", 0.015}, {"allreduce*", 0.005}})},
                                        2);
  ASSERT_TRUE(stats.has_straggler());
  EXPECT_EQ(stats.straggler().rank(), 1);
}

TEST(MergeStats, NamesNobodyWhoseDelayIsNothingBesideTheIteration) {
  const auto with_delay = [](double delay) {
    return MergeStats({Report(0, 1, {{"forward", 0.010}, {"allreduce*", 0.990}}),
                       Report(1, 1, {{"forward", 0.010 + delay}, {"allreduce*", 0.990 - delay}})},
                      2)
        .has_straggler();
  };
  EXPECT_FALSE(with_delay(0.009));
  EXPECT_TRUE(with_delay(0.011));
}

TEST(MergeStats, TenPercentOfWorkIsWithinWhatProcessesDifferByAndOfSleepIsNot) {
  const auto with_cpu_share = [](double share) {
    std::vector<StopwatchStats> reports = {Report(0, 0.02, {{"load", 0.010}, {"allreduce*", 0.010}}),
                                           Report(1, 0.02, {{"load", 0.0108}, {"allreduce*", 0.0092}})};
    for (StopwatchStats& report : reports) {
      report.mutable_own_work()->set_num_watched_iters(kIterations);
      report.mutable_own_work()->set_cpu_seconds(kIterations * share * 0.010);
    }
    return MergeStats(reports, 2);
  };
  EXPECT_FALSE(with_cpu_share(1).has_straggler());
  EXPECT_GT(with_cpu_share(1).detectable(), 0.08);
  ASSERT_TRUE(with_cpu_share(0.05).has_straggler());
  EXPECT_EQ(with_cpu_share(0.05).straggler().rank(), 1);
  EXPECT_LT(with_cpu_share(0.05).straggler().slower_by_low(), 0.08);
  EXPECT_GT(with_cpu_share(0.05).straggler().slower_by_high(), 0.08);
}

TEST(MergeStats, NamesAMeasurementThatIsASmallPartOfTheIteration) {
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < 4; ++rank) {
    reports.push_back(Report(
        rank, 0.050, {{"attention", rank == 1 ? 0.0012 : 0.001}, {"rest", 0.040}, {"allreduce*", 0.005}}));
  }
  const ClusterStats stats = MergeStats(reports, 4);
  EXPECT_FALSE(stats.has_straggler());
  ASSERT_EQ(stats.slow_measurements_size(), 1);
  const SlowMeasurement& slow = stats.slow_measurements(0);
  EXPECT_EQ(slow.name(), "attention");
  EXPECT_EQ(slow.rank(), 1);
  EXPECT_EQ(slow.host(), "node0");
  EXPECT_NEAR(slow.slower_by(), 0.2, 0.001);
  EXPECT_NEAR(slow.share_of_iteration(), 0.004, 1e-5);
}

TEST(MergeStats, BesideASlowRankTriflesOfTheOthersAreNotNamed) {
  const auto names = [](double excess) {
    std::vector<StopwatchStats> reports;
    for (int rank = 0; rank < 4; ++rank) {
      const double forward = rank == 2 ? 0.018 : 0.010;
      const double project = 1e-4 + (rank == 0 ? excess : 0);
      reports.push_back(
          Report(rank, 0.030,
                 {{"forward", forward}, {"project", project}, {"allreduce*", 0.029 - forward - project}}));
    }
    std::vector<std::string> found;
    const ClusterStats stats = MergeStats(reports, 4);
    for (const SlowMeasurement& slow : stats.slow_measurements()) found.push_back(slow.name());
    return found;
  };
  EXPECT_THAT(names(0.0003), IsEmpty());
  EXPECT_THAT(names(0.0005), ElementsAre("project"));
}

TEST(MergeStats, OfManySlowMeasurementsThoseThatCostMostAreNamed) {
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::pair<std::string, double>> times = {{"rest", 0.9}, {"allreduce*", 0.02}};
    for (int i = 0; i < 10; ++i) {
      times.emplace_back("m" + std::to_string(i), 0.004 + (rank == 1 ? 0.0012 + 0.0001 * i : 0));
    }
    reports.push_back(Report(rank, 1, times));
  }
  std::vector<std::string> names;
  const ClusterStats stats = MergeStats(reports, 4);
  for (const SlowMeasurement& slow : stats.slow_measurements()) names.push_back(slow.name());
  EXPECT_THAT(names, ElementsAre("m9", "m8", "m7", "m6", "m5", "m4", "m3", "m2"));
}

TEST(MergeStats, AModuleThatIsSlowByOneInsideOfItIsNotNamed) {
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < 4; ++rank) {
    const double excess = rank == 1 ? 0.0003 : 0;
    reports.push_back(Report(rank, 0.050,
                             {{"h.2", 0.002 + 2 * excess},
                              {"h.2.mlp", 0.001 + excess},
                              {"gate", 0.0005 + excess},
                              {"h.20", 0.001 + excess},
                              {"rest", 0.040},
                              {"allreduce*", 0.002}}));
    const std::vector<const char*> outer_of = {"", "h.2", "h.2.mlp", ""};
    for (size_t i = 0; i < outer_of.size(); ++i) {
      Measurement& module = *reports.back().mutable_measurements(static_cast<int>(i));
      module.set_sampled(true);
      module.set_outer(outer_of[i]);
    }
  }
  const ClusterStats stats = MergeStats(reports, 4);
  std::vector<std::string> names;
  for (const SlowMeasurement& slow : stats.slow_measurements()) names.push_back(slow.name());
  // Half of h.2 lies elsewhere.
  EXPECT_THAT(names, ElementsAre("h.2", "gate", "h.20"));
}

TEST(MergeStats, OnlyRanksThatDoLikeWorkAreCompared) {
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < 4; ++rank)
    reports.push_back(Report(rank, 0.03, {{"forward", rank < 2 ? 0.01 : 0.02}, {"allreduce*", 0.01}}));
  for (int rank = 0; rank < 4; ++rank) {
    *reports[rank].mutable_own_work()->mutable_time()->mutable_all() = Steady(rank < 2 ? 0.01 : 0.02);
  }
  const ClusterStats stats = MergeStats(reports, 4, {"stage 0", "stage 0", "stage 1", "stage 1"});
  EXPECT_FALSE(stats.has_straggler());
  EXPECT_TRUE(stats.has_detectable());
  EXPECT_EQ(stats.slow_measurements_size(), 0);
}

TEST(MergeStats, TheSlowestOfAllGroupsIsNamed) {
  const std::vector<std::string> groups = {"a", "a", "a", "b", "b", "b", "c", "c", "c"};
  for (int slowest = 0; slowest < 9; slowest += 3) {
    std::vector<StopwatchStats> reports;
    for (int rank = 0; rank < 9; ++rank) {
      const double excess = rank == slowest ? 0.008 : rank % 3 == 0 ? 0.004 : 0;
      reports.push_back(Report(rank, 0.03, {{"forward", 0.01 + excess}, {"allreduce*", 0.02 - excess}}));
      reports.back().set_world_size(9);
    }
    EXPECT_EQ(MergeStats(reports, 9, groups).straggler().rank(), slowest);
  }
}

TEST(MergeStats, NamesNobodyForCpuTimeThatASleepOfTheOthersAbsorbed) {
  for (const bool is_slow : {false, true}) {
    std::vector<StopwatchStats> reports = FourRanks(2, is_slow ? 0.015 : 0.010);
    for (StopwatchStats& report : reports) {
      if (report.rank() == 2) continue;
      std::vector<OwnTimeStats*> times = {report.mutable_own_work()->mutable_time()};
      for (Measurement& measurement : *report.mutable_measurements()) {
        if (!measurement.collective()) times.push_back(measurement.mutable_own());
      }
      for (OwnTimeStats* const time : times) {
        *time->mutable_all_with_taken() = time->all();
        *time->mutable_all() = Steady(0.4 * time->all().seconds());
      }
    }
    const ClusterStats stats = MergeStats(reports, 4);
    EXPECT_EQ(stats.has_straggler(), is_slow);
    EXPECT_THAT(stats.slow_measurements(), IsEmpty());
    // An excess that is not there with what others took is not excluded, either.
    EXPECT_EQ(stats.detectable() > 1.5, !is_slow);
  }
}

TEST(MergeStats, CannotTellOfTooFewIterations) {
  std::vector<StopwatchStats> reports = FourRanks(2, 0.018);
  for (StopwatchStats& report : reports) {
    report.mutable_own_work()->clear_time();
    for (Measurement& measurement : *report.mutable_measurements()) measurement.clear_own();
  }
  const ClusterStats stats = MergeStats(reports, 4);
  EXPECT_FALSE(stats.has_straggler());
  EXPECT_FALSE(stats.has_detectable());
}

TEST(MergeStats, SaysThatTheDelayIsOutsideAllMeasurements) {
  std::vector<StopwatchStats> reports = FourRanks(-1, 0);
  for (Measurement& measurement : *reports[1].mutable_measurements()) {
    if (measurement.collective()) *measurement.mutable_per_iteration() = Repeated(0.001, kIterations);
  }
  SetOwnTimes(reports[1]);
  const ClusterStats stats = MergeStats(reports, 4);
  ASSERT_TRUE(stats.has_straggler());
  EXPECT_EQ(stats.straggler().rank(), 1);
  EXPECT_EQ(stats.straggler().measurement(), "");
  EXPECT_NEAR(stats.straggler().measurement_excess_seconds(), 0.017, 1e-4);
  EXPECT_THAT(stats.straggler().parts(), IsEmpty());
}

TEST(MergeStats, MeasurementsOfWhichNoneHasHalfOfTheExcessAreNamedIfTheyHaveItTogether) {
  // Each of three measurements has `each` of the 10 ms.
  for (const double each : {0.0015, 0.0018, 0.003}) {
    std::vector<StopwatchStats> reports;
    for (int rank = 0; rank < 4; ++rank) {
      const double more = rank == 2 ? each : 0;
      reports.push_back(Report(rank, 0.040,
                               {{"data", 0.004 + more},
                                {"forward", 0.004 + more},
                                {"backward", 0.004 + more},
                                {"allreduce*", rank == 2 ? 0.010 : 0.020}}));
      for (Measurement& measurement : *reports.back().mutable_measurements()) measurement.set_outermost(true);
    }
    const ClusterStats stats = MergeStats(reports, 4);
    ASSERT_EQ(stats.straggler().rank(), 2);
    EXPECT_EQ(stats.straggler().measurement(), "");
    EXPECT_EQ(stats.straggler().parts_size(), 3 * each > 0.005 ? 3 : 0) << each;
    for (const StragglerPart& part : stats.straggler().parts())
      EXPECT_NEAR(part.excess_seconds(), each, 1e-5);
    if (3 * each < 0.005) {
      EXPECT_NEAR(stats.straggler().measurement_excess_seconds(), 0.010 - 3 * each, 1e-4);
    }
  }
}

TEST(MergeStats, ARankWithoutAMeasurementIsNoStragglerAndHidesNone) {
  std::vector<StopwatchStats> reports = FourRanks(3, 0.020);
  reports[1].mutable_measurements()->RemoveLast();
  *reports[1].mutable_iteration() = Repeated(0.012, kIterations);
  SetOwnTimes(reports[1]);
  const ClusterStats stats = MergeStats(reports, 4);
  ASSERT_TRUE(stats.has_straggler());
  EXPECT_EQ(stats.straggler().rank(), 3);
  EXPECT_EQ(stats.measurements(2).num_ranks(), 3);
  EXPECT_THAT(stats.measurements(2).ranks_without(), "rank 1");
}

TEST(MergeStats, OfManyRanksThatLackAMeasurementTakesLittleRoom) {
  constexpr int kRanks = 4096;
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < kRanks; ++rank) {
    StopwatchStats& report = reports.emplace_back();
    report.set_rank(rank);
    report.set_num_measured_iters(1);
    *report.mutable_iteration() = Repeated(0.01, 1);
    // Each on every other rank alone.
    Measurement& measurement = *report.add_measurements();
    measurement.set_name(rank % 2 == 0 ? "even" : "odd");
    *measurement.mutable_per_iteration() = Repeated(0.001, 1);
  }
  const ClusterStats stats = MergeStats(reports, kRanks);
  ASSERT_EQ(stats.measurements_size(), 2);
  EXPECT_THAT(stats.measurements(0).ranks_without(), HasSubstr("ranks 1, 3, 5, "));
  EXPECT_THAT(stats.measurements(0).ranks_without(), HasSubstr("... (2048 in all)"));
  EXPECT_LT(stats.ByteSizeLong(), 2000u);
}

TEST(MergeStats, NamesMissingRanksAndMergesInAnyOrder) {
  std::vector<StopwatchStats> reports = FourRanks(2, 0.018);
  std::swap(reports[0], reports[3]);
  reports.erase(reports.begin() + 1);
  const ClusterStats stats = MergeStats(reports, 4);
  EXPECT_THAT(stats.missing_ranks(), ElementsAre(1));
  EXPECT_EQ(stats.ranks_size(), 3);
  EXPECT_EQ(stats.ranks(0).rank(), 0);
  EXPECT_EQ(stats.measurements(0).name(), "data");
  EXPECT_EQ(stats.straggler().rank(), 2);
}

TEST(MergeStats, AddsUpTheReportsOfARestartedRank) {
  const ClusterStats stats =
      MergeStats({Report(0, 0.010, {{"forward", 0.002}}), Report(0, 0.020, {{"forward", 0.004}})}, 1);
  EXPECT_EQ(stats.ranks(0).num_measured_iters(), 2 * kIterations);
  EXPECT_NEAR(stats.iteration().mean(), 0.015, 1e-9);
  EXPECT_NEAR(stats.measurements(0).mean(), 0.003, 1e-9);
  EXPECT_THAT(stats.notes(), testing::Contains("rank 0: 2 reports added up"));
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
    EXPECT_EQ(stats.straggler().parts_size(), 3) << stats.straggler().DebugString();
  }
}

TEST(MergeStats, OfARestartedRankTheReportsCountThatCanBeUsed) {
  StopwatchStats negative = Report(0, 0.020, {});
  negative.mutable_iteration()->set_total(-1);
  negative.mutable_iteration()->clear_exact();
  for (const bool is_last : {false, true}) {
    std::vector<StopwatchStats> reports = {Report(0, 0.010, {{"forward", 0.002}}), negative};
    if (!is_last) std::swap(reports[0], reports[1]);
    const ClusterStats stats = MergeStats(reports, 4);
    EXPECT_EQ(stats.ranks(0).num_measured_iters(), kIterations);
    EXPECT_NEAR(stats.iteration().mean(), 0.010, 1e-9);
    EXPECT_THAT(stats.notes(), ElementsAre(HasSubstr("report left out")));
  }
}

// One rank of 64 works longer, by so much that this has a chance of `p` where it is alike; the others do not
// differ.
std::vector<StopwatchStats> OneLongerByChance(double p) {
  constexpr int kRanks = 64;
  const auto time = [](double seconds) { return SteadyTime{seconds, 0.03, 5}; };
  const CpuShare cpu = {1, 0, kIterations};
  const std::vector<ProcessTime> others(kRanks - 1, {time(1), cpu});
  double low = 0, high = 1;
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (ExcessOver(others, {time(1 + middle), {1 + middle, 0, kIterations * (1 + middle)}}).PValue() > p
         ? low
         : high) = middle;
  }
  std::vector<StopwatchStats> reports;
  for (int rank = 0; rank < kRanks; ++rank) {
    const double seconds = rank == 7 ? 1 + high : 1;
    StopwatchStats report = Report(rank, seconds, {{"forward", seconds}});
    report.set_world_size(kRanks);
    for (OwnTimeStats* own :
         {report.mutable_own_work()->mutable_time(), report.mutable_measurements(0)->mutable_own()}) {
      own->mutable_all()->set_standard_error(0.03);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

// Each of 64 ranks has a 64th of the error, within a factor of 4: what the others' spread is expected to be
// adds to the chance.
TEST(MergeStats, OfManyRanksEachHasItsShareOfTheError) {
  EXPECT_EQ(MergeStats(OneLongerByChance(kWorkError / 16), 64).has_straggler(), false);
  EXPECT_EQ(MergeStats(OneLongerByChance(kWorkError / 256), 64).straggler().rank(), 7);
  EXPECT_EQ(MergeStats(OneLongerByChance(kMeasurementError / 16), 64).slow_measurements_size(), 0);
  // The work alone is no straggler's yet.
  std::vector<StopwatchStats> reports = OneLongerByChance(kMeasurementError / 256);
  for (StopwatchStats& report : reports) report.mutable_own_work()->clear_time();
  const ClusterStats stats = MergeStats(reports, 64);
  ASSERT_EQ(stats.slow_measurements_size(), 1);
  EXPECT_EQ(stats.slow_measurements(0).rank(), 7);
}

TEST(MergeStats, SaysWhichCallsWereRefusedOnWhichRanks) {
  std::vector<StopwatchStats> reports = FourRanks(2, 0.010);
  for (const int rank : {1, 3}) {
    Misuse& misuse = *reports[rank].add_misuses();
    misuse.set_kind("End(\"forward\") without Start");
    misuse.set_count(rank);
  }
  const ClusterStats stats = MergeStats(reports, 4);
  ASSERT_EQ(stats.misuses_size(), 1);
  EXPECT_EQ(stats.misuses(0).count(), 4);
  const std::string line = "End(\"forward\") without Start, 4 times on ranks 1, 3";
  EXPECT_THAT(SlowRankLines(stats), Contains(HasSubstr(line)));
}

TEST(MergeStats, LeavesOutWhatCannotBeAndSaysSo) {
  StopwatchStats negative = Report(1, 0.01, {});
  negative.mutable_iteration()->set_total(-1);
  negative.mutable_iteration()->clear_exact();
  StopwatchStats no_iterations = Report(2, 0.01, {{"forward", 0.001}});
  no_iterations.set_num_measured_iters(0);
  const ClusterStats stats =
      MergeStats({Report(0, 0.01, {{"forward", 0.002}}), negative, no_iterations, Report(9, 0.01, {})}, 4);
  EXPECT_THAT(stats.missing_ranks(), ElementsAre(1, 3));
  EXPECT_THAT(stats.notes(),
              ElementsAre(HasSubstr("rank 1 (node0): report left out"), HasSubstr("rank 9 (node4): left out"),
                          "rank 2: no iteration measured yet"));
  EXPECT_EQ(stats.measurements(0).num_ranks(), 1);
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
    ClusterSummary summary;
    for (StopwatchStats& report : FourRanks(rank, 0.018)) {
      internal::RankReport of_rank;
      if (kind == 1) report.mutable_own_work()->clear_time();
      if (rank >= 0) report.mutable_own_work()->set_waiting_seconds(0.01 * (report.rank() == rank ? 1 : 9));
      *of_rank.mutable_stats() = report;
      summary.Merge(*ClusterSummary::OfRank(of_rank));
    }
    ++num_slowest[summary.slowest()->rank()];
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
    int most = window + 1;
    for (const SlowestCount& count : history.slowest()) {
      EXPECT_EQ(count.num_intervals(), num_slowest[count.rank()]);
      EXPECT_LE(count.num_intervals(), most);
      most = static_cast<int>(count.num_intervals());
    }
    EXPECT_EQ(history.slowest_size(), static_cast<int>(num_slowest.size()));
  }
}

TEST(StragglerTracker, ListsTheRanksThatWereSlowestMostOften) {
  StragglerTracker tracker;
  StragglerHistory history;
  for (int window = 0; window < 20; ++window) {
    ClusterSummary summary;
    for (int rank = 0; rank < 12; ++rank) {
      internal::RankReport of_rank;
      *of_rank.mutable_stats() = Report(rank, 0.02, {{"forward", rank == window % 11 ? 0.018 : 0.010}});
      of_rank.mutable_stats()->mutable_own_work()->set_waiting_seconds(rank == window % 11 ? 1 : 9);
      summary.Merge(*ClusterSummary::OfRank(of_rank));
    }
    history = tracker.Add(summary, window);
  }
  ASSERT_EQ(history.slowest_size(), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(history.slowest(i).rank(), i);
    EXPECT_EQ(history.slowest(i).num_intervals(), 2);
  }
}

TEST(StragglerTracker, CountsNobodyAsSlowestOfOneRank) {
  ClusterSummary summary;
  for (int num_ranks = 1; num_ranks <= 2; ++num_ranks) {
    internal::RankReport of_rank;
    *of_rank.mutable_stats() = FourRanks(0, 0.018)[num_ranks - 1];
    summary.Merge(*ClusterSummary::OfRank(of_rank));
    EXPECT_EQ(StragglerTracker().Add(summary, 0).num_all_intervals(), num_ranks - 1);
  }
}

TEST(MergeStats, OfNothingNamesEveryRankMissing) {
  const ClusterStats stats = MergeStats({}, 3);
  EXPECT_THAT(stats.missing_ranks(), ElementsAre(0, 1, 2));
  EXPECT_FALSE(stats.has_straggler());
}

}  // namespace
}  // namespace ott
