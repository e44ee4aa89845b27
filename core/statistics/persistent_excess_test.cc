// Against simulated truth; persistent_excess_benchmark prints the rates of many more kinds of noise.

#include "ott/core/statistics/persistent_excess.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/location.h"
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

TEST(SteadyTime, IsThatOfItsDefinition) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const auto means_of = [](const std::vector<double>& values, size_t size) {
    std::vector<double> means(values.size() / size);
    for (size_t i = 0; i < means.size() * size; ++i) means[i / size] += values[i] / static_cast<double>(size);
    return means;
  };
  const auto error_of = [](const std::vector<double>& values) {
    const double mean = Mean(values), count = static_cast<double>(values.size());
    double squares = 0;
    for (const double value : values) squares += std::pow(value - mean, 2);
    return std::sqrt(squares / count / (count - 1));
  };
  int num_in_pairs = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const size_t count = 1 + random() % (trial % 2 == 0 ? 100 : 3000);
    SteadyTimeRecorder recorder;
    std::vector<double> seconds, medians;
    double state = 0;
    for (size_t i = 0; i < count; ++i) {
      state = (trial % 3 == 0 ? 0.99 : 0) * state + normal(random);
      seconds.push_back(100 + state);
      recorder.Add(seconds.back());
    }
    for (auto five = seconds.begin(); seconds.end() - five >= 5; five += 5)
      medians.push_back(Median({five, five + 5}));
    // Whenever there are 16 blocks, each two become one.
    size_t length = 1;
    while (medians.size() / length >= 16) length *= 2;
    const std::vector<double> blocks = means_of(medians, length), pairs = means_of(blocks, 2);
    const std::optional<SteadyTime> time = recorder.Finish();
    EXPECT_EQ(recorder.count(), count);
    ASSERT_EQ(time.has_value(), blocks.size() >= 8);
    if (!time) continue;
    const bool in_pairs = error_of(pairs) > error_of(blocks);
    num_in_pairs += in_pairs;
    EXPECT_NEAR(time->seconds, Mean(blocks), 1e-4);
    EXPECT_NEAR(time->standard_error, error_of(in_pairs ? pairs : blocks), 1e-4);
    EXPECT_EQ(time->degrees_of_freedom, (in_pairs ? pairs : blocks).size() - 1);
    EXPECT_EQ(time->count, count);
    EXPECT_EQ(time->block_iterations, 5 * length);
    ASSERT_EQ(time->num_blocks, blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) EXPECT_NEAR(time->blocks[i], blocks[i], 1e-4);
  }
  EXPECT_GT(num_in_pairs, 20);
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
    excess.num_tests = 6;
    EXPECT_EQ(excess.PValue(), 1);
    excess.num_tests = 1;
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

TEST(PersistentExcess, IsNoneThatSharingADisturbanceOrASlowdownExplains) {
  struct Row {
    double usual, longer;       // milliseconds
    double cpu;                 // share on a CPU
    double taken_other, taken;  // shares
    double watched;             // seconds
    double least, most;         // p-value
  };
  constexpr double kShort = 0.2;
  for (const Row& row :
       std::vector<Row>{// Sleep is sure.
                        {5, 5.5, 0, 0, 0, 0, 0, 1e-5},
                        {5.5, 5, 0, 0, 0, 0, 0.99, 1},
                        // Processes of one program differ.
                        {5, 5.2, 1, 0, 0, kLong, 0.01, 1},
                        {5, 6, 1, 0, 0, kLong, 0, 1e-4},
                        // Others come and go, and one process after the other runs beside them.
                        {10, 12.2, 1, 0, 0, kLong, 0, 1e-3},
                        {10, 12.2, 1, 0.3, 0.1, kShort, 0.01, 1},
                        {10, 12.2, 1, 0.1, 0.3, kShort, 0.01, 1},
                        {10, 12.2, 1, 0.3, 0.3, kLong, 0, 1e-3},
                        {10, 12.2, 0.05, 0.3, 0.3, kShort, 0, 1e-3},
                        // A moment on a CPU, however many iterations are in it.
                        {0.35, 1.17 * 0.35, 1, 0, 0, 0.07, 0.01, 1},
                        {0.35, 3 * 0.35, 1, 0, 0, 0.07, 0, 1e-3},
                        // A slowdown of all of a short run, as hosts do to their guests.
                        {0.35, 1.5 * 0.35, 1, 0, 0, 0.13, 0.1, 1},
                        {0.35, 2 * 0.35, 1, 0, 0, 0.13, 0.1, 1},
                        {0.35, 1.1 * 0.35, 1, 0, 0, 3, 0.1, 1},
                        {0.35, 1.5 * 0.35, 1, 0, 0, 1.3, 0, 1e-3},
                        {0.35, 1.2 * 0.35, 1, 0, 0, 10, 0, 1e-3}}) {
    const auto process = [&row](double milliseconds, double taken) {
      const double seconds = milliseconds / 1000;
      return ProcessTime{{seconds, 0.001 * seconds, 10}, {row.cpu * seconds, taken, row.watched}};
    };
    const double p =
        ExcessOver({process(row.usual, row.taken_other)}, process(row.longer, row.taken)).PValue();
    EXPECT_TRUE(p >= row.least && p <= row.most) << row.longer << " of " << row.usual << ": " << p;
  }
}

// On a CPU, in phases that all processes have; slow in iterations of the 300.
ProcessTime InPhases(uint64_t seed, int begin = 0, int end = 0) {
  std::mt19937_64 phases(7), random(seed);
  std::normal_distribution<double> noise(1, 0.02);
  SteadyTimeRecorder recorder;
  for (int i = 0; i < 300; ++i) {
    const double seconds = i >= begin && i < end ? 6.5e-3 : 5e-3;
    recorder.Add(seconds * (0.8 + 0.2 * static_cast<double>(phases() % 3)) * noise(random));
  }
  const SteadyTime time = *recorder.Finish();
  return {time, {time.seconds, 0, kLong}};
}

TEST(PersistentExcess, OfProcessesThatShareTheirPhasesIsFoundWhereItBegins) {
  for (const size_t num_others : {1, 3}) {
    std::vector<ProcessTime> others;
    for (size_t i = 0; i < num_others; ++i) others.push_back(InPhases(i));
    EXPECT_GT(ExcessOver(others, InPhases(9)).PValue(), 0.01);
    for (const auto& [begin, end] : {std::pair(0, 300), {113, 300}, {100, 220}}) {
      const Excess excess = ExcessOver(others, InPhases(9, begin, end));
      EXPECT_LT(excess.PValue(), 1e-3);
      EXPECT_NEAR(excess.begin, begin / 300.0, 0.04);
      EXPECT_NEAR(excess.end, end / 300.0, 0.04);
      EXPECT_NEAR(excess.seconds / excess.of_others, 0.3, 0.04);
    }
  }
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

}  // namespace
}  // namespace ott
