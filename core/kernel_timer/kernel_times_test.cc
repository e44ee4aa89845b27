#include "ott/core/kernel_timer/kernel_times.h"

#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Lap = std::tuple<uint32_t, uint64_t, uint64_t>;

std::vector<Lap> LapsOf(const KernelTimes::Unit& unit) {
  std::vector<Lap> laps;
  for (const KernelTimes::Lap& lap : unit.laps) laps.emplace_back(lap.section, lap.begin, lap.end);
  return laps;
}

auto Fields(const KernelTimes::Unit& unit) {
  return std::tuple(unit.block, unit.warp, unit.sm, unit.start_nanoseconds, unit.end_nanoseconds,
                    unit.start_cycles, unit.cycles, LapsOf(unit));
}

// Memory as kernels leave it, whose clocks run backwards now and then and may reach the highest byte.
TEST(KernelTimes, WhateverLiesInTheMemoryIsTakenInOrCounted) {
  constexpr uint64_t kCycles = (uint64_t{1} << 56) - 1;
  std::mt19937_64 random(1);
  const auto once_in = [&](int times) { return random() % times == 0; };
  KernelTimerView view;
  view.num_units = 5;
  view.laps_per_unit = 4;
  for (int round = 0; round < 500; ++round) {
    KernelTimes expected;
    std::vector<uint64_t> words = {random() % 9};
    expected.num_units_lost = words[0];
    size_t num_events = 0;
    double cycles = 0, nanoseconds = 0;
    for (uint32_t block = 0; block < view.num_units; ++block) {
      KernelTimes::Unit unit;
      unit.block = block;
      unit.warp = block + 1;
      unit.sm = block / 2;
      unit.start_nanoseconds = once_in(6) ? 0 : 1000 + random() % 9;
      unit.end_nanoseconds = once_in(4) ? 0 : unit.start_nanoseconds + 500 - (once_in(9) ? 501 : 0);
      unit.start_cycles = once_in(2) ? kCycles - 100 : 5000;
      unit.cycles = 100 + random() % 2000;
      const bool is_backwards = once_in(9), has_ended = unit.end_nanoseconds != 0;
      const KernelTimerUnit header = {unit.start_nanoseconds,
                                      unit.end_nanoseconds,
                                      unit.start_cycles,
                                      is_backwards ? unit.start_cycles - 1 : unit.start_cycles + unit.cycles,
                                      unit.block,
                                      unit.warp,
                                      unit.sm,
                                      static_cast<uint32_t>(random() % 7)};
      words.resize(words.size() + kKernelTimerUnitWords);
      std::memcpy(&words[words.size() - kKernelTimerUnitWords], &header, sizeof(header));
      uint64_t last = 0;
      int64_t num_invalid = 0;
      for (uint32_t lap = 0; lap < view.laps_per_unit; ++lap) {
        const uint64_t end = once_in(6) ? last - 1 : last + random() % 300;
        const uint32_t section = once_in(4) ? kNoKernelSection : lap + 1;
        const bool is_there = lap < header.num_laps;
        words.push_back(is_there ? ((unit.start_cycles + end) & kCycles) | uint64_t{section} << 56 : 0);
        if (!is_there) continue;
        if (end != last - 1) {
          unit.laps.push_back({section, last, end});
          last = end;
        } else {
          ++num_invalid;
        }
      }
      if (unit.start_nanoseconds == 0) continue;
      if (has_ended && (is_backwards || unit.end_nanoseconds < unit.start_nanoseconds)) {
        ++expected.num_invalid;
        continue;
      }
      expected.num_invalid += num_invalid;
      if (!has_ended) unit.cycles = last;
      if (has_ended && header.num_laps > 4) expected.num_laps_lost += header.num_laps - 4;
      if (has_ended) cycles += static_cast<double>(unit.cycles);
      if (has_ended) nanoseconds += 500;
      for (const KernelTimes::Lap& lap : unit.laps) num_events += lap.section != kNoKernelSection;
      expected.units.push_back(unit);
    }
    const KernelTimes times = ReadKernelTimes(words, view).value();
    EXPECT_EQ(times.num_units_lost, expected.num_units_lost);
    EXPECT_EQ(times.num_laps_lost, expected.num_laps_lost);
    EXPECT_EQ(times.num_invalid, expected.num_invalid);
    EXPECT_DOUBLE_EQ(times.CyclesPerNanosecond(), nanoseconds > 0 ? cycles / nanoseconds : 0);
    EXPECT_EQ(KernelSectionEvents(times).size(), nanoseconds > 0 ? num_events : 0);
    ASSERT_EQ(times.units.size(), expected.units.size());
    for (size_t i = 0; i < times.units.size(); ++i)
      EXPECT_EQ(Fields(times.units[i]), Fields(expected.units[i]));
  }
  const absl::Status status = ReadKernelTimes(std::vector<uint64_t>(50), view).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("50 words of memory, but 5 units of 4 laps take 51"));
}

// "SECTION block B SM S.LANE START-END"
std::vector<std::string> Events(const KernelTimes& times) {
  std::vector<std::string> result;
  for (const KernelSectionEvent& event : KernelSectionEvents(times)) {
    result.push_back(std::to_string(event.section) + " block " + std::to_string(event.block) + " SM " +
                     std::to_string(event.sm) + "." + std::to_string(event.lane) + " " +
                     std::to_string(event.start_nanoseconds) + "-" + std::to_string(event.end_nanoseconds));
  }
  return result;
}

// A block at 2 cycles a nanosecond of which the first half is section 0, the other none.
KernelTimes::Unit Block(uint32_t block, uint32_t sm, uint64_t start_cycles, uint64_t shown_ns,
                        uint64_t cycles) {
  KernelTimes::Unit unit;
  unit.block = block;
  unit.sm = sm;
  unit.start_nanoseconds = shown_ns;
  unit.start_cycles = start_cycles;
  unit.end_nanoseconds = shown_ns + cycles / 2;
  unit.cycles = cycles;
  unit.laps = {{0, 0, cycles / 2}, {kNoKernelSection, cycles / 2, cycles}};
  return unit;
}

TEST(KernelTimes, EventsLieOnGlobaltimerInLanesOfTheirSm) {
  const auto events = [](const std::vector<KernelTimes::Unit>& units) {
    KernelTimes times;
    times.units = units;
    return Events(times);
  };
  EXPECT_THAT(events({Block(0, 1, 10000, 500, 400), Block(1, 2, 70000, 600, 800)}),
              ElementsAre("0 block 0 SM 1.0 500-600", "0 block 1 SM 2.0 600-800"));
  EXPECT_THAT(
      events({Block(1, 1, 10100, 1050, 400), Block(0, 1, 10000, 1000, 400), Block(2, 1, 10400, 1200, 400)}),
      ElementsAre("0 block 0 SM 1.0 1000-1100", "0 block 1 SM 1.1 1050-1150", "0 block 2 SM 1.0 1200-1300"));
  // No double holds such times to the nanosecond.
  EXPECT_THAT(events({Block(0, 1, 10000, 1700000000000000500, 400)}),
              ElementsAre("0 block 0 SM 1.0 1700000000000000500-1700000000000000600"));
  // In truth 1400, 1700 and 2000, shown in steps of 500 that move no block against others of its SM.
  EXPECT_THAT(
      events({Block(2, 1, 11200, 2000, 600), Block(0, 1, 10000, 1000, 600), Block(1, 1, 10600, 1500, 600)}),
      ElementsAre("0 block 0 SM 1.0 1400-1550", "0 block 1 SM 1.0 1700-1850", "0 block 2 SM 1.0 2000-2150"));
}

TEST(KernelTimes, TheRecorderGetsSectionsInUnixTimeOnTracksOfSms) {
  KernelTimes times;
  times.units = {Block(7, 1, 10000, 500, 400)};
  EventRecorder recorder(Clock::Steady());
  recorder.Open();
  RecordKernelSections(times, "solve", {"load", "store"}, {1000000, 250}, recorder);
  recorder.Close();
  EXPECT_THAT(recorder.TrackNames(), ElementsAre("solve SM 1.0"));
  std::string records;
  for (const EventRecorder::Buffer& buffer : recorder.Buffers()) records += buffer.records;
  EXPECT_THAT(records, HasSubstr("load{\"block\":7,\"warp\":0,\"clock_error_ns\":250}"));
  const int64_t start_and_end[2] = {1000500, 1000600};
  EXPECT_THAT(records,
              HasSubstr(std::string(reinterpret_cast<const char*>(start_and_end), sizeof(start_and_end))));
}

TEST(KernelTimes, SectionsWithoutANameShowTheirNumber) {
  const std::vector<std::string> sections = {"load"};
  EXPECT_EQ(KernelSectionName(sections, 0), "load");
  EXPECT_EQ(KernelSectionName(sections, 7), "section 7");
}

}  // namespace
}  // namespace ott
