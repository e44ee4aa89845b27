#include "ott/core/kernel_timer/kernel_timer_report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "ott/core/base/proto_json.h"

namespace ott {
namespace {

using ::testing::AllOf;
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

KernelTimes Lost() {
  KernelTimes times;
  times.num_laps_lost = 3;
  times.num_units_lost = 2;
  times.num_invalid = 1;
  return times;
}

// One section, by the definition of its statistics.
struct Expected {
  std::vector<uint64_t> of_units;  // cycles of each unit in which it ran
  std::map<uint32_t, uint64_t> of_sms;
  std::vector<std::vector<uint64_t>> of_iterations;
  int64_t laps = 0;

  KernelSectionStats Stats(const std::string& name, uint64_t all, double seconds, size_t num_sms) {
    std::sort(of_units.begin(), of_units.end());
    const auto sum_of = [](const std::vector<uint64_t>& of) {
      return std::accumulate(of.begin(), of.end(), 0.0);
    };
    // The smallest that so many percent do not exceed.
    const auto percentile = [&](size_t percent) {
      size_t i = 0;
      while ((i + 1) * 100 < percent * of_units.size()) ++i;
      return static_cast<double>(of_units[i]) * seconds;
    };
    const double total = sum_of(of_units), count = static_cast<double>(of_units.size());
    KernelSectionStats stats;
    stats.set_name(name);
    stats.set_total(total * seconds);
    if (all > 0) stats.set_share(total / static_cast<double>(all));
    stats.set_units(static_cast<int64_t>(of_units.size()));
    stats.set_mean(total / count * seconds);
    stats.set_min(percentile(0));
    stats.set_p50(percentile(50));
    stats.set_p90(percentile(90));
    stats.set_p99(percentile(99));
    stats.set_max(percentile(100));
    uint64_t most = 0;
    for (const auto& [sm, cycles] : of_sms) most = std::max(most, cycles);
    const auto slowest =
        std::find_if(of_sms.begin(), of_sms.end(), [&](const auto& of) { return of.second == most; });
    stats.set_slowest_sm(slowest->first);
    if (total > 0)
      stats.set_sm_imbalance(static_cast<double>(most) * static_cast<double>(num_sms) / total - 1);
    stats.set_laps(laps);
    for (size_t i = 0; i < std::min<size_t>(1000, of_iterations.size()); ++i)
      stats.add_per_iteration(sum_of(of_iterations[i]) / static_cast<double>(of_iterations[i].size()) *
                              seconds);
    return stats;
  }
};

TEST(KernelTimerReport, OfAnyLaunchesTheStatisticsAreThoseOfTheirDefinition) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t end) { return static_cast<uint32_t>(random() % end); };
    KernelTimerReport report("solve", {"load", "line search"});
    std::map<uint32_t, Expected> sections;
    std::set<uint32_t> sms;
    uint64_t all = 0, nanoseconds = 0;
    KernelTimerStats expected;
    expected.set_kernel("solve");
    const bool has_globaltimer = below(5) > 0, has_many_laps = seed % 60 == 0;
    for (expected.set_launches(below(3)); report.Stats().launches() < expected.launches();) {
      KernelTimes times = Lost();
      for (uint32_t i = below(120 / (1 + below(20))); i > 0; --i) {
        std::vector<std::pair<uint32_t, uint64_t>> laps;
        for (uint32_t k = below(has_many_laps ? 1300 : 5); k > 0; --k)
          laps.emplace_back(std::vector<uint32_t>{0, 1, 7, kNoKernelSection}[has_many_laps ? 0 : below(4)],
                            2 * below(50));
        KernelTimes::Unit unit = Unit(2 * below(4), laps, 2 * below(50));
        if (!has_globaltimer) unit.end_nanoseconds = unit.start_nanoseconds;
        if (below(4) == 0) unit.end_nanoseconds = 0;
        uint64_t rest = unit.cycles;
        std::map<uint32_t, uint64_t> cycles = {{kNoKernelSection, 0}};
        std::map<uint32_t, size_t> num_laps;
        for (const auto& [section, lap] : laps) {
          if (section == kNoKernelSection) continue;
          Expected& of = sections[section];
          cycles[section] += lap;
          rest -= lap;
          ++of.laps;
          const size_t iteration = num_laps[section]++;
          of.of_iterations.resize(std::max(of.of_iterations.size(), iteration + 1));
          of.of_iterations[iteration].push_back(lap);
        }
        cycles[kNoKernelSection] = rest;
        for (const auto& [section, of_section] : cycles) {
          sections[section].of_units.push_back(of_section);
          sections[section].of_sms[unit.sm] += of_section;
        }
        all += unit.cycles;
        nanoseconds += unit.end_nanoseconds == 0 ? 0 : unit.end_nanoseconds - unit.start_nanoseconds;
        expected.set_units_unfinished(expected.units_unfinished() + (unit.end_nanoseconds == 0 ? 1 : 0));
        expected.set_units(expected.units() + 1);
        sms.insert(unit.sm);
        times.units.push_back(std::move(unit));
      }
      report.Add(times);
    }
    expected.set_laps_lost(3 * expected.launches());
    expected.set_units_lost(2 * expected.launches());
    expected.set_invalid(expected.launches());
    expected.set_sms(static_cast<int64_t>(sms.size()));
    if (nanoseconds > 0) expected.set_cycles_per_nanosecond(2);
    const double seconds = nanoseconds > 0 ? 0.5e-9 : 1;
    expected.set_total(static_cast<double>(all) * seconds);
    for (auto& [number, section] : sections) {
      const char* const name = number == 0   ? "load"
                               : number == 1 ? "line search"
                               : number == 7 ? "section 7"
                                             : "";
      *expected.add_sections() = section.Stats(name, all, seconds, sms.size());
    }
    google::protobuf::util::MessageDifferencer differencer;
    differencer.set_float_comparison(google::protobuf::util::MessageDifferencer::APPROXIMATE);
    std::string difference;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(expected, report.Stats())) << difference;
  }
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
  units[0].end_nanoseconds = units[0].start_nanoseconds;
  units[1].end_nanoseconds = 0;
  EXPECT_THAT(ReportOf(Lost(), units).Table(),
              AllOf(HasSubstr("times in cycles"), HasSubstr("load     100.0 %    200 "),
                    HasSubstr("not timed: 2 blocks or warps; give the buffer more num_units\n"),
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
