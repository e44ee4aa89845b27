#include "ott/core/kernel_timer/kernel_timer_report.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/proto_json.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// 2 cycles a nanosecond; laps of section and cycles.
KernelTimes::Unit Unit(uint32_t sm, const std::vector<std::pair<uint32_t, uint64_t>>& laps,
                       uint64_t rest = 0) {
  KernelTimes::Unit unit;
  unit.sm = sm;
  unit.start_nanoseconds = 1000;
  for (const auto& [section, cycles] : laps) {
    unit.laps.push_back({section, unit.cycles, unit.cycles + cycles});
    unit.cycles += cycles;
  }
  unit.cycles += rest;
  unit.end_nanoseconds = unit.start_nanoseconds + unit.cycles / 2;
  return unit;
}

KernelTimerReport ReportOf(KernelTimes times, std::vector<KernelTimes::Unit> units) {
  times.units = std::move(units);
  KernelTimerReport report("solve", {"load", "line search"});
  report.Add(times);
  return report;
}

KernelTimerStats StatsOf(std::vector<KernelTimes::Unit> units) {
  return ReportOf({}, std::move(units)).Stats();
}

KernelTimes Lost() {
  KernelTimes times;
  times.num_laps_lost = 3;
  times.num_units_lost = 2;
  times.num_invalid = 1;
  return times;
}

TEST(KernelTimerReport, TotalsAndSharesAddUp) {
  const KernelTimerStats stats = StatsOf({Unit(0, {{0, 200}, {1, 600}, {kNoKernelSection, 100}}, 100)});
  EXPECT_EQ(stats.kernel(), "solve");
  EXPECT_EQ(stats.launches(), 1);
  EXPECT_EQ(stats.units(), 1);
  EXPECT_DOUBLE_EQ(stats.cycles_per_nanosecond(), 2);
  EXPECT_DOUBLE_EQ(stats.total(), 500e-9);
  ASSERT_EQ(stats.sections_size(), 3);
  EXPECT_EQ(stats.sections(0).name(), "load");
  EXPECT_DOUBLE_EQ(stats.sections(0).total(), 100e-9);
  EXPECT_DOUBLE_EQ(stats.sections(0).share(), 0.2);
  EXPECT_EQ(stats.sections(1).name(), "line search");
  EXPECT_DOUBLE_EQ(stats.sections(1).share(), 0.6);
  // Skipped, and after the last lap.
  EXPECT_EQ(stats.sections(2).name(), "");
  EXPECT_DOUBLE_EQ(stats.sections(2).share(), 0.2);
  EXPECT_EQ(stats.sections(2).laps(), 0);
}

TEST(KernelTimerReport, StatisticsAreOverTheBlocksInWhichASectionRan) {
  std::vector<KernelTimes::Unit> units;
  for (uint64_t i = 1; i <= 100; ++i) units.push_back(Unit(0, {{0, i * 2}}));
  units.push_back(Unit(0, {{1, 5000}}));
  const KernelTimerStats stats = StatsOf(std::move(units));
  const KernelSectionStats& load = stats.sections(0);
  EXPECT_EQ(load.units(), 100);
  EXPECT_THAT(load.mean(), DoubleNear(50.5e-9, 1e-15));
  EXPECT_THAT(load.min(), DoubleNear(1e-9, 1e-15));
  EXPECT_THAT(load.p50(), DoubleNear(50e-9, 1e-15));
  EXPECT_THAT(load.p90(), DoubleNear(90e-9, 1e-15));
  EXPECT_THAT(load.p99(), DoubleNear(99e-9, 1e-15));
  EXPECT_THAT(load.max(), DoubleNear(100e-9, 1e-15));
}

TEST(KernelTimerReport, TheLapsOfABlockAreItsIterations) {
  const KernelTimerStats stats =
      StatsOf({Unit(0, {{0, 100}, {1, 200}, {1, 400}}), Unit(0, {{0, 100}, {1, 400}, {1, 600}, {1, 1000}})});
  const KernelSectionStats& search = stats.sections(1);
  EXPECT_EQ(search.laps(), 5);
  EXPECT_THAT(search.mean(), DoubleNear(650e-9, 1e-15));
  EXPECT_THAT(search.per_iteration(),
              ElementsAre(DoubleNear(150e-9, 1e-15), DoubleNear(250e-9, 1e-15), DoubleNear(500e-9, 1e-15)));
}

TEST(KernelTimerReport, ImbalanceIsOverAllSmsThatRanTheKernel) {
  const KernelTimerStats stats = StatsOf({Unit(0, {{0, 100}, {1, 100}}), Unit(5, {{0, 100}, {1, 100}}),
                                          Unit(5, {{0, 100}, {1, 100}}), Unit(9, {{0, 300}})});
  EXPECT_EQ(stats.sms(), 3);
  // 100, 200, 300 and 100, 200, 0.
  EXPECT_DOUBLE_EQ(stats.sections(0).sm_imbalance(), 0.5);
  EXPECT_EQ(stats.sections(0).slowest_sm(), 9);
  EXPECT_DOUBLE_EQ(stats.sections(1).sm_imbalance(), 1);
  EXPECT_EQ(stats.sections(1).slowest_sm(), 5);
}

TEST(KernelTimerReport, LaunchesAddUp) {
  KernelTimerReport report = ReportOf(Lost(), {Unit(0, {{0, 100}})});
  report.Add(Lost());
  const KernelTimerStats stats = report.Stats();
  EXPECT_EQ(stats.launches(), 2);
  EXPECT_EQ(stats.units(), 1);
  EXPECT_DOUBLE_EQ(stats.sections(0).total(), 50e-9);
  EXPECT_EQ(stats.laps_lost(), 6);
  EXPECT_EQ(stats.units_lost(), 4);
  EXPECT_EQ(stats.invalid(), 2);
}

TEST(KernelTimerReport, OnlyTheFirstThousandIterationsAreKeptApart) {
  const KernelTimerStats stats =
      StatsOf({Unit(0, std::vector<std::pair<uint32_t, uint64_t>>(1500, {0, 10}))});
  EXPECT_EQ(stats.sections(0).laps(), 1500);
  EXPECT_EQ(stats.sections(0).per_iteration_size(), 1000);
  EXPECT_DOUBLE_EQ(stats.sections(0).share(), 1);
}

TEST(KernelTimerReport, WithoutGlobaltimerTimesAreCycles) {
  KernelTimes::Unit unit = Unit(0, {{0, 300}});
  unit.end_nanoseconds = unit.start_nanoseconds;
  const KernelTimerReport report = ReportOf({}, {unit});
  EXPECT_EQ(report.Stats().cycles_per_nanosecond(), 0);
  EXPECT_EQ(report.Stats().sections(0).total(), 300);
  EXPECT_THAT(report.Table(), HasSubstr("times in cycles"));
}

TEST(KernelTimerReport, TheTableHasARowForEachSection) {
  const KernelTimerReport report =
      ReportOf({}, {Unit(0, {{0, 2000}, {1, 6000}, {1, 10000}}, 2000), Unit(1, {{0, 2000}, {1, 18000}})});
  EXPECT_EQ(report.Table(), R"(kernel solve; launches: 1, blocks or warps: 2, SMs: 2, 2.000 GHz
section       share  total  laps  mean lap    mean   min   p50   p90   p99   max  SM imbalance  most on
load         10.0 %   2 us     2      1 us    1 us  1 us  1 us  1 us  1 us  1 us         0.0 %     SM 0
line search  85.0 %  17 us     3  5.667 us  8.5 us  8 us  8 us  9 us  9 us  9 us         5.9 %     SM 1
(none)        5.0 %   1 us     0            500 ns   0 s   0 s  1 us  1 us  1 us       100.0 %     SM 0
)");
}

TEST(KernelTimerReport, TheTableSaysWhatIsMissing) {
  std::vector<KernelTimes::Unit> units = {Unit(0, {{0, 100}}), Unit(0, {{0, 100}})};
  EXPECT_THAT(ReportOf({}, units).Table(), AllOf(Not(HasSubstr("not ")), Not(HasSubstr("no times"))));
  units[1].end_nanoseconds = 0;
  EXPECT_THAT(ReportOf(Lost(), units).Table(),
              AllOf(HasSubstr("not timed: 2 blocks or warps; give the buffer more num_units\n"),
                    HasSubstr("not kept: 3 laps; give the buffer more laps_per_unit\n"),
                    HasSubstr("not ended: 1 blocks or warps\n"),
                    HasSubstr("no times: 1 laps or units whose clock runs backwards\n")));
}

TEST(KernelTimerReport, JsonIsTheStatistics) {
  KernelTimes times;
  times.units = {Unit(3, {{0, 100}, {7, 200}})};
  KernelTimerReport report("solve \"fast\"", {"load"});
  report.Add(times);
  KernelTimerStats read;
  ASSERT_TRUE(JsonToProto(report.Json(), &read).ok());
  EXPECT_EQ(read.SerializeAsString(), report.Stats().SerializeAsString());
  EXPECT_EQ(read.sections(1).name(), "section 7");
}

}  // namespace
}  // namespace ott
