#include "ott/core/kernel_timer/kernel_timer_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/text_table.h"

namespace ott {
namespace {

constexpr size_t kMaxIterations = 1000;

// The smallest sample that at least so many percent are not above. REQUIRES: sorted, not empty.
uint64_t Percentile(const std::vector<uint64_t>& sorted, size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

}  // namespace

void KernelTimerReport::Add(const KernelTimes& launch) {
  ++num_launches_;
  num_units_lost_ += launch.num_units_lost;
  num_laps_lost_ += launch.num_laps_lost;
  num_invalid_ += launch.num_invalid;
  for (const KernelTimes::Unit& unit : launch.units) AddUnit(unit);
}

void KernelTimerReport::AddUnit(const KernelTimes::Unit& unit) {
  ++num_units_;
  sms_.insert(unit.sm);
  total_cycles_ += unit.cycles;
  if (unit.end_nanoseconds == 0) {
    ++num_units_unfinished_;
  } else {
    timed_cycles_ += unit.cycles;
    timed_nanoseconds_ += unit.end_nanoseconds - unit.start_nanoseconds;
  }

  struct Sum {
    uint64_t cycles = 0;
    size_t laps = 0;
  };
  std::map<uint32_t, Sum> sums;
  uint64_t of_laps = 0;
  for (const KernelTimes::Lap& lap : unit.laps) {
    if (lap.section == kNoKernelSection) continue;
    const uint64_t cycles = lap.end - lap.begin;
    of_laps += cycles;
    Sum& sum = sums[lap.section];
    std::vector<Section::Iteration>& iterations = sections_[lap.section].per_iteration;
    if (sum.laps < kMaxIterations) {
      if (sum.laps == iterations.size()) iterations.emplace_back();
      iterations[sum.laps].total += cycles;
      ++iterations[sum.laps].units;
    }
    sum.cycles += cycles;
    ++sum.laps;
  }
  sums[kNoKernelSection].cycles = unit.cycles - std::min(of_laps, unit.cycles);
  for (const auto& [number, sum] : sums) {
    Section& section = sections_[number];
    section.total += sum.cycles;
    section.laps += static_cast<int64_t>(sum.laps);
    section.per_unit.push_back(sum.cycles);
    section.per_sm[unit.sm] += sum.cycles;
  }
}

KernelSectionStats KernelTimerReport::StatsOf(const Section& section, double seconds_per_cycle) const {
  const auto seconds = [seconds_per_cycle](double cycles) { return cycles * seconds_per_cycle; };
  KernelSectionStats stats;
  stats.set_total(seconds(section.total));
  if (total_cycles_ > 0) stats.set_share(static_cast<double>(section.total) / total_cycles_);
  std::vector<uint64_t> sorted = section.per_unit;
  std::sort(sorted.begin(), sorted.end());
  stats.set_units(static_cast<int64_t>(sorted.size()));
  stats.set_mean(seconds(static_cast<double>(section.total) / sorted.size()));
  stats.set_min(seconds(sorted.front()));
  stats.set_p50(seconds(Percentile(sorted, 50)));
  stats.set_p90(seconds(Percentile(sorted, 90)));
  stats.set_p99(seconds(Percentile(sorted, 99)));
  stats.set_max(seconds(sorted.back()));
  const auto slowest = std::max_element(section.per_sm.begin(), section.per_sm.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  stats.set_slowest_sm(slowest->first);
  if (section.total > 0) {
    const double mean = static_cast<double>(section.total) / sms_.size();
    stats.set_sm_imbalance(slowest->second / mean - 1);
  }
  stats.set_laps(section.laps);
  for (const Section::Iteration& iteration : section.per_iteration) {
    stats.add_per_iteration(seconds(static_cast<double>(iteration.total) / iteration.units));
  }
  return stats;
}

KernelTimerStats KernelTimerReport::Stats() const {
  KernelTimerStats stats;
  stats.set_kernel(kernel_);
  stats.set_launches(num_launches_);
  stats.set_units(num_units_);
  stats.set_sms(static_cast<int64_t>(sms_.size()));
  double seconds_per_cycle = 1;
  if (timed_nanoseconds_ > 0 && timed_cycles_ > 0) {
    stats.set_cycles_per_nanosecond(static_cast<double>(timed_cycles_) / timed_nanoseconds_);
    seconds_per_cycle = 1e-9 / stats.cycles_per_nanosecond();
  }
  stats.set_total(total_cycles_ * seconds_per_cycle);
  for (const auto& [number, section] : sections_) {
    KernelSectionStats& of_section = *stats.add_sections();
    of_section = StatsOf(section, seconds_per_cycle);
    if (number != kNoKernelSection) of_section.set_name(KernelSectionName(section_names_, number));
  }
  stats.set_units_lost(static_cast<int64_t>(num_units_lost_));
  stats.set_laps_lost(static_cast<int64_t>(num_laps_lost_));
  stats.set_units_unfinished(num_units_unfinished_);
  stats.set_invalid(static_cast<int64_t>(num_invalid_));
  return stats;
}

std::string KernelTimerReport::Table() const {
  const KernelTimerStats stats = Stats();
  const bool in_seconds = stats.cycles_per_nanosecond() > 0;
  const auto time = [in_seconds](double value) {
    return in_seconds ? FormatSeconds(value) : absl::StrFormat("%.0f", value);
  };
  std::string text = absl::StrFormat(
      "kernel %s; launches: %d, blocks or warps: %d, SMs: %d, %s\n", EscapeControlCharacters(kernel_),
      stats.launches(), stats.units(), stats.sms(),
      in_seconds ? absl::StrFormat("%.3f GHz", stats.cycles_per_nanosecond()) : "times in cycles");
  TextTable table({"section", "share", "total", "laps", "mean lap", "mean", "min", "p50", "p90", "p99", "max",
                   "SM imbalance", "most on"});
  for (const KernelSectionStats& section : stats.sections()) {
    table.AddRow({section.name().empty() ? "(none)" : section.name(),
                  absl::StrFormat("%.1f %%", 100 * section.share()), time(section.total()),
                  absl::StrCat(section.laps()),
                  section.laps() == 0 ? "" : time(section.total() / section.laps()), time(section.mean()),
                  time(section.min()), time(section.p50()), time(section.p90()), time(section.p99()),
                  time(section.max()), absl::StrFormat("%.1f %%", 100 * section.sm_imbalance()),
                  absl::StrCat("SM ", section.slowest_sm())});
  }
  text += table.ToString();
  if (stats.units_lost() > 0) {
    absl::StrAppend(&text, "not timed: ", stats.units_lost(),
                    " blocks or warps; give the buffer more num_units\n");
  }
  if (stats.laps_lost() > 0) {
    absl::StrAppend(&text, "not kept: ", stats.laps_lost(), " laps; give the buffer more laps_per_unit\n");
  }
  if (stats.units_unfinished() > 0) {
    absl::StrAppend(&text, "not ended: ", stats.units_unfinished(), " blocks or warps\n");
  }
  if (stats.invalid() > 0) {
    absl::StrAppend(&text, "no times: ", stats.invalid(), " laps or units whose clock runs backwards\n");
  }
  return text;
}

std::string KernelTimerReport::Json() const { return ProtoToJson(Stats(), JsonLayout::kOneLine); }

}  // namespace ott
