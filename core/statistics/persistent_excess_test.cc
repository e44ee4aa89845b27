// Against simulated truth; persistent_excess_benchmark prints the rates of many more kinds of noise.

#include "ott/core/statistics/persistent_excess.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/steady_time.h"

namespace ott {
namespace {

// Autocorrelated noise of 5 % around a level.
SteadyTime Simulate(double level, int iterations, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  SteadyTimeRecorder recorder;
  double state = normal(random);
  for (int i = 0; i < iterations; ++i) {
    state = 0.9 * state + std::sqrt(1 - 0.81) * normal(random);
    recorder.Add(level * (1 + 0.05 * state));
  }
  return *recorder.Finish();
}

TEST(SteadyTime, NeedsEnoughBlocks) {
  SteadyTimeRecorder recorder;
  for (int i = 0; i < SteadyTimeRecorder::kMinBlocks * SteadyTimeRecorder::kBaseLength; ++i) {
    EXPECT_FALSE(recorder.Finish().has_value()) << i;
    recorder.Add(1);
  }
  ASSERT_TRUE(recorder.Finish().has_value());
  EXPECT_EQ(recorder.Finish()->seconds, 1);
  EXPECT_EQ(recorder.Finish()->standard_error, 0);
}

TEST(SteadyTime, OneStallMovesNothing) {
  for (int stall = 500; stall < 500 + SteadyTimeRecorder::kBaseLength; ++stall) {
    SteadyTimeRecorder recorder;
    for (int i = 0; i < 1000; ++i) recorder.Add(i == stall || i == stall + 1 ? 20 : 0.01);
    EXPECT_NEAR(recorder.Finish()->seconds, 0.01, 1e-9) << stall;
    EXPECT_LT(recorder.Finish()->standard_error, 1e-9);
  }
}

TEST(SteadyTime, OfAnyNumberOfIterationsIsTheirMean) {
  for (const int iterations : {40, 163, 5000, 1000000}) {
    SteadyTimeRecorder recorder;
    for (int i = 0; i < iterations; ++i) recorder.Add(i);
    // All but what is not yet a block.
    EXPECT_NEAR(recorder.Finish()->seconds, iterations / 2.0, iterations / 16.0) << iterations;
    EXPECT_EQ(recorder.count(), iterations);
  }
}

// 0.95 nominally; the blocks of 400 iterations are 12.5 to 25 of them, the noise depends on the last 20.
TEST(SteadyTime, TheIntervalHoldsTheTruthAsOftenAsItSays) {
  std::mt19937_64 random(1);
  constexpr int kRuns = 2000;
  int held = 0;
  for (int run = 0; run < kRuns; ++run) {
    const SteadyTime time = Simulate(1, 400, random);
    const Estimate estimate = {time.seconds, time.standard_error, time.degrees_of_freedom};
    const Interval interval = estimate.IntervalAt(0.05);
    held += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
  }
  EXPECT_GT(held, 0.93 * kRuns);
}

TEST(PersistentExcess, IsTestedOnOneSideAndOfSeveralTestsAtTheLevelOfOne) {
  Excess excess;
  excess.among_processes.standard_error = 2;
  excess.among_processes.degrees_of_freedom = 5;
  for (const double level : {0.4, 0.05, 0.001}) {
    excess.among_processes.value = 2 * StudentTQuantile(1 - level, 5);
    EXPECT_NEAR(excess.PValue(), level, 1e-9);
    excess.among_processes.value *= -1;
    EXPECT_NEAR(excess.PValue(), 1 - level, 1e-9);
  }
  excess.among_processes.value = 0;
  for (const int num_tests : {1, 6}) {
    excess.num_tests = num_tests;
    EXPECT_NEAR(excess.Detectable(0.01), 2 * (StudentTQuantile(1 - 0.01 / num_tests, 5) + 0.84), 1e-9);
  }
}

// Others and process as they are, with known errors: how often the excess is found at its level, and at its
// detectable size.
TEST(PersistentExcess, IsFoundAsOftenAsItSays) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal;
  constexpr int kRuns = 4000;
  constexpr double kLevel = 0.02;
  constexpr double kSpread = 0.2;  // far more than is expected without having seen it
  const auto found = [&](double longer) {
    int count = 0;
    for (int run = 0; run < kRuns; ++run) {
      std::vector<ProcessTime> others(100);
      for (ProcessTime& other : others) other.time = {1 + kSpread * normal(random), 1e-6, 10};
      const ProcessTime process = {{1 + longer + kSpread * normal(random), 1e-6, 10}, {}};
      count += ExcessOver(others, process).PValue() <= kLevel ? 1 : 0;
    }
    return count / static_cast<double>(kRuns);
  };
  EXPECT_NEAR(found(0), kLevel, 0.012);
  constexpr int kSamples = 100;
  double detectable = 0;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<ProcessTime> others(100);
    for (ProcessTime& other : others) other.time = {1 + kSpread * normal(random), 1e-6, 10};
    detectable += ExcessOver(others, {{1, 1e-6, 10}, {}}).Detectable(kLevel) / kSamples;
  }
  EXPECT_NEAR(found(detectable), 0.8, 0.05);
}

// So long that no disturbance lasts.
constexpr double kLong = 100;
ProcessTime Sleeping(double seconds) { return {{seconds, 0.001 * seconds, 10}, {}}; }
ProcessTime Computing(double seconds) { return {{seconds, 0.001 * seconds, 10}, {seconds, 0, kLong}}; }

TEST(PersistentExcess, OfAProcessThatSleepsLongerIsSure) {
  const Excess excess = ExcessOver({Sleeping(5e-3)}, Sleeping(5.5e-3));
  EXPECT_NEAR(excess.seconds, 0.5e-3, 1e-9);
  EXPECT_LT(excess.PValue(), 1e-5);
  EXPECT_GT(ExcessOver({Sleeping(5.5e-3)}, Sleeping(5e-3)).PValue(), 0.99);
  EXPECT_LT(excess.Detectable(1e-4), 0.1e-3);
}

TEST(PersistentExcess, OfTwoThatComputeIsNoneWithinWhatProcessesDifferBy) {
  EXPECT_GT(ExcessOver({Computing(5e-3)}, Computing(5.2e-3)).PValue(), 0.01);
  EXPECT_LT(ExcessOver({Computing(5e-3)}, Computing(6e-3)).PValue(), 1e-4);
}

TEST(PersistentExcess, OfProcessesWhoseCpuOthersHadIsNoneThatSharingExplains) {
  const SteadyTime usual = {0.010, 1e-6, 20};
  const SteadyTime longer = {0.0122, 1e-6, 20};
  EXPECT_LT(ExcessOver({{usual, {0.010, 0, kLong}}}, {longer, {0.0122, 0, kLong}}).PValue(), 0.001);
  constexpr double kShort = 0.2;
  EXPECT_GT(ExcessOver({{usual, {0.010, 0.3, kShort}}}, {longer, {0.0122, 0.1, kShort}}).PValue(), 0.01);
  EXPECT_GT(ExcessOver({{usual, {0.010, 0.1, kShort}}}, {longer, {0.0122, 0.3, kShort}}).PValue(), 0.01);
  // Others come and go, and one process after the other runs beside them.
  EXPECT_LT(ExcessOver({{usual, {0.010, 0.3, kLong}}}, {longer, {0.0122, 0.3, kLong}}).PValue(), 0.001);
  // Sleep does not get longer by it.
  EXPECT_LT(ExcessOver({{usual, {0.0005, 0.3, kShort}}}, {longer, {0.0005, 0.3, kShort}}).PValue(), 0.001);
}

TEST(PersistentExcess, OnACpuOfAMomentIsNoneThatADisturbanceOrASlowdownExplains) {
  const auto p_value = [](double longer, double watched_seconds) {
    const auto computing = [=](double seconds) {
      return ProcessTime{{seconds, 0.001 * seconds, 10}, {seconds, 0, watched_seconds}};
    };
    return ExcessOver({computing(350e-6)}, computing(350e-6 * (1 + longer))).PValue();
  };
  // However many iterations there are in it.
  EXPECT_GT(p_value(0.17, 0.07), 0.01);
  EXPECT_LT(p_value(2, 0.07), 1e-3);
  // A slowdown of all of a short run, as hosts do to their guests.
  EXPECT_GT(p_value(0.5, 0.13), 0.1);
  EXPECT_GT(p_value(1, 0.13), 0.1);
  EXPECT_GT(p_value(0.1, 3), 0.1);
  EXPECT_LT(p_value(0.5, 1.3), 1e-3);
  EXPECT_LT(p_value(0.2, 10), 1e-3);
}

// On a CPU, in phases that all processes have: of each iteration, how long it takes this one.
ProcessTime InPhases(const std::function<double(int)>& seconds, int seed, bool has_phases = true) {
  std::mt19937_64 phases(7);
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::normal_distribution<double> noise(1, 0.02);
  SteadyTimeRecorder recorder;
  for (int i = 0; i < 300; ++i) {
    const double phase = has_phases ? std::array<double, 3>{1, 2, 0.5}[phases() % 3] : 1;
    recorder.Add(seconds(i) * phase * noise(random));
  }
  const SteadyTime time = *recorder.Finish();
  return {time, {time.seconds, 0, kLong}};
}

TEST(PersistentExcess, OfProcessesThatShareTheirPhasesIsWhatTheyDifferByInEach) {
  const auto usual = [](int) { return 5e-3; };
  const ProcessTime other = InPhases(usual, 1);
  const Excess excess = ExcessOver({other}, InPhases([](int) { return 6e-3; }, 2));
  EXPECT_LT(excess.PValue(), 1e-4);
  EXPECT_FALSE(excess.is_of_part());
  EXPECT_LT(excess.Detectable(1e-3), 0.2 * excess.of_others);
  EXPECT_GT(ExcessOver({other}, InPhases(usual, 3)).PValue(), 0.01);
  // Not of the same iterations.
  ProcessTime apart = other;
  apart.time.block_iterations *= 2;
  EXPECT_GT(ExcessOver({apart}, InPhases([](int) { return 6e-3; }, 2)).Detectable(1e-3),
            0.3 * excess.of_others);
}

TEST(PersistentExcess, TheLeastCertainShareOfACpuLetsProcessesDifferMost) {
  for (const bool turned : {false, true}) {
    const CpuShare a = {1, 0.2, 7, 0.4}, b = {2, 0.1, 9, 0.3};
    const CpuShare least = turned ? LeastCertain(b, a) : LeastCertain(a, b);
    EXPECT_EQ(least.cpu_seconds, 2);
    EXPECT_EQ(least.taken_share, 0.2);
    EXPECT_EQ(least.watched_seconds, 7);
    EXPECT_EQ(least.taken_seconds, 0.4);
  }
}

ProcessTime Steady(const std::function<double(int)>& seconds, int seed) {
  return InPhases(seconds, seed, false);
}

TEST(PersistentExcess, OfAPartOfTheRunIsFoundWhereItBegins) {
  const auto late = [](int i) { return i < 113 ? 5e-3 : 6.5e-3; };
  for (const size_t num_others : {1, 3}) {
    std::vector<ProcessTime> others;
    for (size_t i = 0; i < num_others; ++i)
      others.push_back(Steady([](int) { return 5e-3; }, static_cast<int>(i)));
    const Excess excess = ExcessOver(others, Steady(late, 9));
    EXPECT_LT(excess.PValue(), 1e-3);
    EXPECT_NEAR(excess.begin, 113 / 300.0, 0.04);
    EXPECT_EQ(excess.end, 1);
    EXPECT_NEAR(excess.seconds / excess.of_others, 0.3, 0.03);
    EXPECT_NEAR(excess.seconds_of_run / excess.seconds, 187 / 300.0, 0.06);
  }
  const auto between = [](int i) { return i < 100 || i >= 220 ? 5e-3 : 6.5e-3; };
  const Excess excess = ExcessOver({Steady([](int) { return 5e-3; }, 1)}, Steady(between, 2));
  EXPECT_LT(excess.PValue(), 1e-3);
  EXPECT_NEAR(excess.begin, 100 / 300.0, 0.04);
  EXPECT_NEAR(excess.end, 220 / 300.0, 0.04);
}

}  // namespace
}  // namespace ott
