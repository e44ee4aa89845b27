#include "ott/core/stopwatch/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

// Durations as programs have them, and as they hardly ever have.
std::vector<std::vector<uint64_t>> Samples() {
  std::mt19937_64 random(7);
  std::vector<std::vector<uint64_t>> samples;
  const auto sample = [&samples](size_t size, const auto& next) {
    std::vector<uint64_t>& values = samples.emplace_back(size);
    for (uint64_t& value : values) value = next();
  };
  std::lognormal_distribution<double> narrow(std::log(1e9), 0.05), wide(std::log(1e9), 5);
  std::exponential_distribution<double> waiting(1e-7);
  sample(1000, [&] { return static_cast<uint64_t>(narrow(random)); });
  sample(10000, [&] { return static_cast<uint64_t>(wide(random)); });
  sample(1000, [&] { return static_cast<uint64_t>(waiting(random)); });
  sample(1000, [&] { return random() % 2 == 0 ? uint64_t{1000} : uint64_t{1000000000}; });
  sample(1000, [&] { return random(); });
  sample(1000, [&] { return random() % 200; });
  sample(4, [&] { return random() % 4000; });
  sample(1, [] { return uint64_t{12345}; });
  sample(2, [] { return std::numeric_limits<uint64_t>::max(); });
  return samples;
}

TEST(QuantileSketch, BucketsAreInTheOrderOfTheirValuesAndWithinOnePercentOfThem) {
  std::mt19937_64 random(3);
  auto last = QuantileSketch::BucketOf(0);
  for (int octave = 0; octave < 64; ++octave) {
    for (uint64_t part = 0; part < 64; ++part) {
      const uint64_t low = (uint64_t{1} << octave) + static_cast<uint64_t>(std::ldexp(part, octave - 6));
      const uint64_t width = octave < 6 ? 0 : (uint64_t{1} << (octave - 6)) - 1;
      for (const uint64_t value : {low, low + random() % (width + 1), low + width}) {
        const auto bucket = QuantileSketch::BucketOf(value);
        ASSERT_GE(bucket, std::exchange(last, bucket)) << value;
        const double represented = QuantileSketch::ValueOf(bucket);
        // A bucket that is narrower than a picosecond holds one value.
        ASSERT_TRUE(octave > 6 || represented == static_cast<double>(value)) << value;
        ASSERT_LE(std::abs(represented / static_cast<double>(value) - 1), 1.0 / 129 + 1e-12) << value;
      }
    }
  }
  EXPECT_LT(last, QuantileSketch::kNumBuckets);
  EXPECT_EQ(QuantileSketch::ValueOf(QuantileSketch::BucketOf(0)), 0);
}

TEST(QuantileSketch, QuantilesAreWithinOnePercent) {
  for (std::vector<uint64_t> values : Samples()) {
    QuantileSketch sketch;
    for (const uint64_t value : values) sketch.Add(value);
    EXPECT_EQ(sketch.count(), values.size());
    std::sort(values.begin(), values.end());
    for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const double below = std::max(0.0, std::ceil(q * static_cast<double>(values.size()) - 1e-9) - 1);
      const double exact = static_cast<double>(values[static_cast<size_t>(below)]);
      ASSERT_LE(std::abs(sketch.Quantile(q) - exact), QuantileSketch::kRelativeError * exact)
          << "quantile " << q << " of " << values.size();
    }
  }
}

}  // namespace
}  // namespace ott
