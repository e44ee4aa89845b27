#include "ott/core/stopwatch/quantile_sketch.h"

#include <cmath>
#include <random>
#include <utility>

#include "gtest/gtest.h"

namespace ott {
namespace {

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

}  // namespace
}  // namespace ott
