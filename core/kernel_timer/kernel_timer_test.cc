// The code of the device, run by the host thread by thread with clocks of the test's own.

#include <cstdint>
#include <vector>

#define __device__

struct Index {
  unsigned int x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

static void atomicAdd(unsigned long long* to, unsigned long long value) { *to += value; }

// Returns those four of the eight bytes of low and high that the selector names (CUDA C++ Programming Guide).
static uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  }
  return result;
}

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/kernel_timer/kernel_timer.cuh"
#include "ott/core/kernel_timer/kernel_times.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Advances by 100 cycles, and 50 ns, with each reading of the cycles.
struct FakeClock {
  static uint64_t Cycles() { return cycles += 100; }
  static uint64_t Nanoseconds() { return 1000 + (cycles - start) / 2; }
  static uint32_t Sm() { return blockIdx.x % 3; }

  static void StartAt(uint64_t cycles_shown) { cycles = start = cycles_shown; }

  static inline uint64_t start = 0;
  static inline uint64_t cycles = 0;
};

enum class Section { kLoad, kSearch };

class KernelTimerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeClock::StartAt(5000);
    view_.num_units = 100;
    view_.laps_per_unit = 10;
  }

  // Three laps in each thread, of which one is skipped.
  template <bool kTimed>
  static void Kernel(const KernelTimerView& view) {
    KernelTimer<Section, kTimed, FakeClock> timer(view);
    timer.Lap(Section::kLoad);
    timer.Skip();
    timer.Lap(Section::kSearch);
  }

  template <bool kTimed = true>
  KernelTimes Launch(Index grid, Index block) {
    std::vector<uint64_t> memory(KernelTimerMemorySize(view_));
    KernelTimerView view = view_;
    view.memory = memory.data();
    gridDim = grid;
    blockDim = block;
    ForEach(grid, blockIdx, [&] { ForEach(block, threadIdx, [&] { Kernel<kTimed>(view); }); });
    return *ReadKernelTimes(memory, view);
  }

  KernelTimerView view_;

 private:
  template <typename F>
  static void ForEach(Index size, Index& at, const F& f) {
    for (at.z = 0; at.z < size.z; ++at.z) {
      for (at.y = 0; at.y < size.y; ++at.y) {
        for (at.x = 0; at.x < size.x; ++at.x) f();
      }
    }
  }
};

std::vector<uint32_t> Blocks(const KernelTimes& times) {
  std::vector<uint32_t> result;
  for (const KernelTimes::Unit& unit : times.units) result.push_back(unit.block);
  return result;
}

TEST_F(KernelTimerTest, ABlockIsTimedByItsFirstThreadWithoutTheHighestByteOfTheClock) {
  for (const uint64_t start : {uint64_t{5000}, uint64_t{0x12ffffffffffff00}}) {
    FakeClock::StartAt(start);
    const KernelTimes times = Launch({2, 3, 2}, {2, 2, 2});
    ASSERT_THAT(Blocks(times), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
    const KernelTimes::Unit& unit = times.units[3];
    EXPECT_EQ(unit.sm, 1);
    EXPECT_EQ(unit.cycles, 400);
    // globaltimer is read before the first cycles and after the last.
    EXPECT_EQ(unit.end_nanoseconds - unit.start_nanoseconds, 250);
    ASSERT_EQ(unit.laps.size(), 3);
    EXPECT_EQ(unit.laps[0].section, 0);
    EXPECT_EQ(unit.laps[0].begin, 0);
    EXPECT_EQ(unit.laps[0].end, 100);
    EXPECT_EQ(unit.laps[1].section, kNoKernelSection);
    EXPECT_EQ(unit.laps[2].section, 1);
    EXPECT_EQ(unit.laps[2].end, 300);
    EXPECT_EQ(times.num_laps_lost + times.num_units_lost + times.num_invalid, 0);
  }
}

TEST_F(KernelTimerTest, WarpsAreTimedWhereAskedFor) {
  view_.per_warp = true;
  const KernelTimes times = Launch({2, 1, 1}, {13, 5, 1});
  ASSERT_THAT(Blocks(times), ElementsAre(0, 0, 0, 1, 1, 1));
  for (size_t i = 0; i < times.units.size(); ++i) EXPECT_EQ(times.units[i].warp, i % 3);
}

TEST_F(KernelTimerTest, BlocksAreSampledWhereAskedFor) {
  view_.every_n_blocks = 3;
  EXPECT_THAT(Blocks(Launch({8, 1, 1}, {64, 1, 1})), ElementsAre(0, 3, 6));
  view_.per_warp = true;
  EXPECT_THAT(Blocks(Launch({4, 1, 1}, {64, 1, 1})), ElementsAre(0, 0, 3, 3));
}

TEST_F(KernelTimerTest, WhatDoesNotFitIsCounted) {
  view_.num_units = 2;
  view_.laps_per_unit = 1;
  const KernelTimes times = Launch({5, 1, 1}, {1, 1, 1});
  ASSERT_THAT(Blocks(times), ElementsAre(0, 1));
  EXPECT_EQ(times.num_units_lost, 3);
  EXPECT_EQ(times.num_laps_lost, 2 * 2);
  EXPECT_EQ(times.units[1].laps.size(), 1);
}

TEST_F(KernelTimerTest, WithoutMemoryOrWithATimerThatIsOffNothingIsTimed) {
  EXPECT_THAT(Launch<false>({4, 1, 1}, {1, 1, 1}).units, IsEmpty());
  Kernel<true>(KernelTimerView());
}

}  // namespace
}  // namespace ott
