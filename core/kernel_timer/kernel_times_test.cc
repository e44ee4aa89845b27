#include "ott/core/kernel_timer/kernel_times.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kHighestByte = uint64_t{0xff} << 56;

// The memory that a kernel would leave.
class Memory {
 public:
  Memory(uint32_t num_units, uint32_t laps_per_unit) {
    view_.num_units = num_units;
    view_.laps_per_unit = laps_per_unit;
    words_.resize(KernelTimerMemorySize(view_));
  }

  void SetUnit(uint32_t index, const KernelTimerUnit& unit) {
    std::memcpy(&words_[Word(index)], &unit, sizeof(unit));
  }
  void SetLap(uint32_t unit, uint32_t lap, uint32_t section, uint64_t cycles) {
    words_[Word(unit) + kKernelTimerUnitWords + lap] = (cycles & ~kHighestByte) | uint64_t{section} << 56;
  }

  KernelTimes Read() const {
    const absl::StatusOr<KernelTimes> times = ReadKernelTimes(words_, view_);
    EXPECT_TRUE(times.ok()) << times.status();
    return *times;
  }

  const KernelTimerView& view() const { return view_; }
  const std::vector<uint64_t>& words() const { return words_; }

 private:
  size_t Word(uint32_t unit) const { return 1 + unit * (kKernelTimerUnitWords + view_.laps_per_unit); }

  KernelTimerView view_;
  std::vector<uint64_t> words_;
};

// "SECTION BEGIN-END" of each lap.
std::vector<std::string> Laps(const KernelTimes::Unit& unit) {
  std::vector<std::string> result;
  for (const KernelTimes::Lap& lap : unit.laps) {
    result.push_back(std::to_string(lap.section) + " " + std::to_string(lap.begin) + "-" +
                     std::to_string(lap.end));
  }
  return result;
}

// Starts at 1000 ns and `start` cycles, and lasts 500 ns and 1000 cycles.
KernelTimerUnit Unit(uint32_t num_laps, uint64_t start = 5000) {
  return {1000, 1500, start, start + 1000, 7, 2, 13, num_laps};
}

TEST(KernelTimes, LapsFollowEachOther) {
  Memory memory(2, 3);
  memory.SetUnit(1, Unit(2));
  memory.SetLap(1, 0, 0, 5100);
  memory.SetLap(1, 1, 4, 5900);
  const KernelTimes times = memory.Read();
  ASSERT_THAT(times.units, SizeIs(1));
  EXPECT_EQ(times.units[0].block, 7);
  EXPECT_EQ(times.units[0].warp, 2);
  EXPECT_EQ(times.units[0].sm, 13);
  EXPECT_EQ(times.units[0].cycles, 1000);
  EXPECT_THAT(Laps(times.units[0]), ElementsAre("0 0-100", "4 100-900"));
  EXPECT_EQ(times.num_laps_lost + times.num_units_lost + times.num_invalid, 0);
  EXPECT_EQ(times.CyclesPerNanosecond(), 2);
}

TEST(KernelTimes, AUnitThatHasNotEndedKeepsItsLaps) {
  Memory memory(1, 3);
  KernelTimerUnit unit = Unit(0);
  unit.end_nanoseconds = unit.end_cycles = 0;
  memory.SetUnit(0, unit);
  memory.SetLap(0, 0, 0, 5100);
  memory.SetLap(0, 1, 1, 5300);
  const KernelTimes times = memory.Read();
  EXPECT_THAT(Laps(times.units[0]), ElementsAre("0 0-100", "1 100-300"));
  EXPECT_EQ(times.units[0].cycles, 300);
  EXPECT_EQ(times.units[0].end_nanoseconds, 0);
  EXPECT_EQ(times.CyclesPerNanosecond(), 0);
}

TEST(KernelTimes, TimesThatRunBackwardsAreCountedAndLeftOut) {
  Memory memory(2, 2);
  memory.SetUnit(0, Unit(2));
  memory.SetLap(0, 0, 0, 5100);
  memory.SetLap(0, 1, 1, 5050);
  KernelTimerUnit backwards = Unit(0);
  backwards.end_cycles = backwards.start_cycles - 1;
  memory.SetUnit(1, backwards);
  const KernelTimes times = memory.Read();
  ASSERT_THAT(times.units, SizeIs(1));
  EXPECT_THAT(Laps(times.units[0]), ElementsAre("0 0-100"));
  EXPECT_EQ(times.num_invalid, 2);
}

TEST(KernelTimes, MemoryOfAnotherSizeIsRefused) {
  const Memory memory(2, 3);
  std::vector<uint64_t> words = memory.words();
  words.pop_back();
  const absl::StatusOr<KernelTimes> times = ReadKernelTimes(words, memory.view());
  EXPECT_EQ(times.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(times.status().message()),
              HasSubstr("18 words of memory, but 2 units of 3 laps take 19"));
}

TEST(KernelTimes, AKernelThatNeverRanLeavesNothing) {
  EXPECT_THAT(Memory(3, 3).Read().units, IsEmpty());
  EXPECT_THAT(KernelSectionEvents(Memory(3, 3).Read()), IsEmpty());
}

TEST(KernelTimes, WhateverLiesInTheMemoryIsTakenInOrCounted) {
  std::mt19937_64 random(1);
  KernelTimerView view;
  view.num_units = 50;
  view.laps_per_unit = 5;
  for (int round = 0; round < 100; ++round) {
    std::vector<uint64_t> words(KernelTimerMemorySize(view));
    // Zero to 64 bits each, so that some fit together.
    for (uint64_t& word : words) word = random() >> 1 >> random() % 63;
    const absl::StatusOr<KernelTimes> times = ReadKernelTimes(words, view);
    ASSERT_TRUE(times.ok());
    for (const KernelTimes::Unit& unit : times->units) {
      uint64_t last = 0;
      for (const KernelTimes::Lap& lap : unit.laps) {
        EXPECT_EQ(lap.begin, last);
        EXPECT_GE(lap.end, lap.begin);
        last = lap.end;
      }
    }
    size_t num_laps = 0;
    for (const KernelTimes::Unit& unit : times->units) {
      for (const KernelTimes::Lap& lap : unit.laps) num_laps += lap.section != kNoKernelSection;
    }
    EXPECT_EQ(KernelSectionEvents(*times).size(), num_laps);
  }
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

TEST(KernelTimes, EventsLieOnGlobaltimer) {
  KernelTimes times;
  times.units = {Block(0, 1, 10000, 500, 400), Block(1, 2, 70000, 600, 800)};
  EXPECT_THAT(Events(times), ElementsAre("0 block 0 SM 1.0 500-600", "0 block 1 SM 2.0 600-800"));
}

TEST(KernelTimes, EventsOfBlocksThatShareAnSmHaveLanes) {
  KernelTimes times;
  times.units = {Block(0, 1, 10000, 1000, 400), Block(1, 1, 10100, 1050, 400), Block(2, 1, 10400, 1200, 400)};
  EXPECT_THAT(Events(times), ElementsAre("0 block 0 SM 1.0 1000-1100", "0 block 1 SM 1.1 1050-1150",
                                         "0 block 2 SM 1.0 1200-1300"));
}

TEST(KernelTimes, StepsOfGlobaltimerMoveNoBlockAgainstOthersOfItsSm) {
  KernelTimes times;
  // In truth 1400, 1700 and 2000, shown in steps of 500.
  times.units = {Block(0, 1, 10000, 1000, 600), Block(1, 1, 10600, 1500, 600), Block(2, 1, 11200, 2000, 600)};
  EXPECT_THAT(Events(times), ElementsAre("0 block 0 SM 1.0 1400-1550", "0 block 1 SM 1.0 1700-1850",
                                         "0 block 2 SM 1.0 2000-2150"));
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
