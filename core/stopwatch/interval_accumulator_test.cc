#include "ott/core/stopwatch/interval_accumulator.h"

#include <atomic>
#include <limits>
#include <random>
#include <thread>

#include "gtest/gtest.h"

namespace ott::internal {
namespace {

TEST(IntervalAccumulator, GivesTheStatisticsOfWhatWasAdded) {
  IntervalAccumulator accumulator;
  EXPECT_EQ(accumulator.Read(), DurationStatistics());
  DurationStatistics expected;
  std::mt19937_64 random(5);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t duration = random() >> (random() % 64);
    accumulator.Add(duration, duration / 2);
    expected.AddPicoseconds(duration);
  }
  EXPECT_EQ(accumulator.Read(), expected);
}

TEST(IntervalAccumulator, SumsCarryOver64Bits) {
  IntervalAccumulator accumulator;
  constexpr uint64_t kLongest = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < 4; ++i) accumulator.Add(kLongest, kLongest);
  const IntervalAccumulator::Totals totals = accumulator.ReadTotals();
  EXPECT_TRUE(totals.total == Uint128{kLongest} * 4);
  EXPECT_TRUE(totals.inner == Uint128{kLongest} * 4);
}

TEST(IntervalAccumulator, ReadersSeeEachDurationAsAWhole) {
  IntervalAccumulator accumulator;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) accumulator.Add(1000, 400);
  });
  for (int i = 0; i < 10000; ++i) {
    const IntervalAccumulator::Totals totals = accumulator.ReadTotals();
    ASSERT_TRUE(totals.total == Uint128{totals.count} * 1000);
    ASSERT_TRUE(totals.inner == Uint128{totals.count} * 400);
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace ott::internal
