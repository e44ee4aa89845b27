#include "ott/core/base/clock.h"

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace ott {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Reading {
  uint64_t ticks;
  SteadyClock::time_point steady;
};

// The reading that was disturbed least.
Reading ReadTogether(const Clock& clock) {
  Reading best{};
  auto least = SteadyClock::duration::max();
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto before = SteadyClock::now();
    const uint64_t ticks = clock.Ticks();
    const auto between = SteadyClock::now() - before;
    if (between >= least) continue;
    least = between;
    best = {ticks, before + between / 2};
  }
  return best;
}

TEST(Clock, AgreesWithSteadyClockWithin50PartsPerMillion) {
  EXPECT_FALSE(Clock::Steady().uses_cycle_counter());
  for (const Clock& clock : {Clock::Fastest(), Clock::Steady()}) {
    const Reading start = ReadTogether(clock);
    std::this_thread::sleep_for(std::chrono::milliseconds(clock.uses_cycle_counter() ? 200 : 20));
    const Reading end = ReadTogether(clock);
    const double ours = static_cast<double>(clock.ToPicoseconds(end.ticks - start.ticks)) * 1e-12;
    const double theirs = std::chrono::duration<double>(end.steady - start.steady).count();
    EXPECT_NEAR(ours / theirs, 1, 50e-6) << clock.uses_cycle_counter();
  }
}

TEST(Clock, ConversionIsExactForNanosecondSourcesUpToMonths) {
  const Clock clock([]() -> uint64_t { return 7; });
  EXPECT_EQ(clock.Ticks(), 7);
  EXPECT_EQ(clock.ToPicoseconds(1), 1000);
  constexpr uint64_t kHundredDays = uint64_t{100} * 24 * 3600 * 1'000'000'000;
  EXPECT_EQ(clock.ToPicoseconds(kHundredDays), kHundredDays * 1000);
}

}  // namespace
}  // namespace ott
