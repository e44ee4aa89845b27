#include "ott/core/kernel_timer/kernel_times.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ott {
namespace {

constexpr uint64_t kCyclesMask = (uint64_t{1} << kKernelTimerSectionShift) - 1;

// From one reading of clock64, of which the highest byte may be missing, to a later one. None if that is
// earlier.
std::optional<uint64_t> CyclesBetween(uint64_t from, uint64_t to) {
  const uint64_t cycles = (to - from) & kCyclesMask;
  if (cycles > kCyclesMask / 2) return std::nullopt;
  return cycles;
}

// Adds the laps that are whole.
void ReadLaps(absl::Span<const uint64_t> laps, KernelTimes::Unit& unit, KernelTimes& times) {
  uint64_t begin = 0;
  for (const uint64_t lap : laps) {
    const std::optional<uint64_t> end = CyclesBetween(unit.start_cycles, lap);
    if (!end.has_value() || *end < begin) {
      ++times.num_invalid;
      continue;
    }
    unit.laps.push_back({static_cast<uint32_t>(lap >> kKernelTimerSectionShift), begin, *end});
    begin = *end;
  }
}

void ReadUnit(const KernelTimerUnit& header, absl::Span<const uint64_t> laps, KernelTimes& times) {
  KernelTimes::Unit unit;
  unit.block = header.block;
  unit.warp = header.warp;
  unit.sm = header.sm;
  unit.start_nanoseconds = header.start_nanoseconds;
  unit.start_cycles = header.start_cycles;
  unit.end_nanoseconds = header.end_nanoseconds;
  if (unit.end_nanoseconds == 0) {
    // The number of laps is told at the end only.
    const auto end = std::find(laps.begin(), laps.end(), uint64_t{0});
    ReadLaps(laps.first(end - laps.begin()), unit, times);
    if (!unit.laps.empty()) unit.cycles = unit.laps.back().end;
  } else {
    const std::optional<uint64_t> cycles = CyclesBetween(header.start_cycles, header.end_cycles);
    if (!cycles.has_value() || header.end_nanoseconds < header.start_nanoseconds) {
      ++times.num_invalid;
      return;
    }
    unit.cycles = *cycles;
    const size_t num_laps = std::min<size_t>(header.num_laps, laps.size());
    times.num_laps_lost += header.num_laps - num_laps;
    ReadLaps(laps.first(num_laps), unit, times);
  }
  times.units.push_back(std::move(unit));
}

}  // namespace

uint64_t KernelTimerMemorySize(const KernelTimerView& view) {
  return 1 + view.num_units * (kKernelTimerUnitWords + view.laps_per_unit);
}

absl::StatusOr<KernelTimes> ReadKernelTimes(absl::Span<const uint64_t> memory, const KernelTimerView& view) {
  if (memory.size() != KernelTimerMemorySize(view)) {
    return absl::InvalidArgumentError(absl::StrCat("kernel timer: ", memory.size(), " words of memory, but ",
                                                   view.num_units, " units of ", view.laps_per_unit,
                                                   " laps take ", KernelTimerMemorySize(view)));
  }
  KernelTimes times;
  times.num_units_lost = memory[0];
  for (uint32_t i = 0; i < view.num_units; ++i) {
    const absl::Span<const uint64_t> words = memory.subspan(
        1 + i * (kKernelTimerUnitWords + view.laps_per_unit), kKernelTimerUnitWords + view.laps_per_unit);
    KernelTimerUnit header;
    std::memcpy(&header, words.data(), sizeof(header));
    if (header.start_nanoseconds == 0) continue;
    ReadUnit(header, words.subspan(kKernelTimerUnitWords), times);
  }
  return times;
}

double KernelTimes::CyclesPerNanosecond() const {
  double cycles = 0;
  double nanoseconds = 0;
  for (const Unit& unit : units) {
    if (unit.end_nanoseconds == 0) continue;
    cycles += static_cast<double>(unit.cycles);
    nanoseconds += static_cast<double>(unit.end_nanoseconds - unit.start_nanoseconds);
  }
  return nanoseconds > 0 ? cycles / nanoseconds : 0;
}

std::vector<KernelSectionEvent> KernelSectionEvents(const KernelTimes& times) {
  const double cycles_per_ns = times.CyclesPerNanosecond();
  if (cycles_per_ns == 0) return {};

  // The clock of an SM, in nanoseconds after `zero`; doubles are exact enough within a launch.
  struct Sm {
    uint64_t zero_cycles = 0;
    uint64_t zero_nanoseconds = 0;
    // globaltimer steps, and shows the last step: the most that it is ahead of the cycles is the truth.
    double ahead = 0;
    // By lane, the unit there ends.
    std::vector<double> lane_ends;
  };
  std::map<uint32_t, Sm> sms;
  std::vector<const KernelTimes::Unit*> units;
  for (const KernelTimes::Unit& unit : times.units) {
    const auto [found, added] = sms.emplace(unit.sm, Sm());
    if (added || unit.start_cycles < found->second.zero_cycles) {
      found->second.zero_cycles = unit.start_cycles;
      found->second.zero_nanoseconds = unit.start_nanoseconds;
    }
    units.push_back(&unit);
  }
  const auto start_of = [&](const KernelTimes::Unit& unit, const Sm& sm) {
    return static_cast<double>(unit.start_cycles - sm.zero_cycles) / cycles_per_ns;
  };
  for (const KernelTimes::Unit& unit : times.units) {
    Sm& sm = sms[unit.sm];
    const auto by_globaltimer =
        static_cast<double>(static_cast<int64_t>(unit.start_nanoseconds - sm.zero_nanoseconds));
    sm.ahead = std::max(sm.ahead, by_globaltimer - start_of(unit, sm));
  }

  std::sort(units.begin(), units.end(), [](const KernelTimes::Unit* a, const KernelTimes::Unit* b) {
    return std::make_pair(a->sm, a->start_cycles) < std::make_pair(b->sm, b->start_cycles);
  });
  std::vector<KernelSectionEvent> events;
  for (const KernelTimes::Unit* unit : units) {
    Sm& sm = sms[unit->sm];
    const double start = start_of(*unit, sm);
    auto lane =
        std::find_if(sm.lane_ends.begin(), sm.lane_ends.end(), [start](double end) { return end <= start; });
    if (lane == sm.lane_ends.end()) lane = sm.lane_ends.insert(lane, 0);
    *lane = start + static_cast<double>(unit->cycles) / cycles_per_ns;
    const auto at = [&](uint64_t cycles) {
      return static_cast<int64_t>(sm.zero_nanoseconds) +
             std::llround(sm.ahead + start + static_cast<double>(cycles) / cycles_per_ns);
    };
    for (const KernelTimes::Lap& lap : unit->laps) {
      if (lap.section == kNoKernelSection) continue;
      events.push_back({lap.section, unit->block, unit->warp, unit->sm,
                        static_cast<uint32_t>(lane - sm.lane_ends.begin()), at(lap.begin), at(lap.end)});
    }
  }
  return events;
}

std::string KernelSectionName(absl::Span<const std::string> sections, uint32_t section) {
  return section < sections.size() ? sections[section] : absl::StrCat("section ", section);
}

void RecordKernelSections(const KernelTimes& times, const std::string& kernel,
                          absl::Span<const std::string> sections, const GlobalTimerOffset& offset,
                          EventRecorder& recorder) {
  for (const KernelSectionEvent& event : KernelSectionEvents(times)) {
    const std::string name = KernelSectionName(sections, event.section);
    const std::string args = absl::StrCat("{\"block\":", event.block, ",\"warp\":", event.warp,
                                          ",\"clock_error_ns\":", offset.error_nanoseconds, "}");
    EventRecorder::Slice slice;
    slice.track = recorder.AddTrack(absl::StrCat(kernel, " SM ", event.sm, ".", event.lane));
    slice.category = EventCategory::kKernelSection;
    slice.name = name;
    slice.start_unix_nanoseconds = event.start_nanoseconds + offset.unix_nanoseconds;
    slice.end_unix_nanoseconds = event.end_nanoseconds + offset.unix_nanoseconds;
    slice.args = args;
    recorder.AddSlice(slice);
  }
}

}  // namespace ott
