#include "ott/core/stopwatch/statistics.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {
namespace {

DurationStatistics Of(const std::vector<double>& seconds) {
  DurationStatistics result;
  for (const double duration : seconds) result.AddSeconds(duration);
  return result;
}

TEST(DurationStatistics, AreZeroWithoutDurations) {
  const DurationStatistics none;
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.mean(), 0);
  EXPECT_EQ(none.standard_deviation(), 0);
  EXPECT_EQ(none.min(), 0);
  EXPECT_EQ(DurationStatistics::FromProto(none.ToProto()).value(), none);
}

TEST(DurationStatistics, MatchTheirDefinitions) {
  const DurationStatistics statistics = Of({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(statistics.count(), 8);
  EXPECT_DOUBLE_EQ(statistics.total(), 40);
  EXPECT_DOUBLE_EQ(statistics.mean(), 5);
  EXPECT_DOUBLE_EQ(statistics.squared_deviations(), 32);
  EXPECT_DOUBLE_EQ(statistics.standard_deviation(), 2);
  EXPECT_DOUBLE_EQ(statistics.min(), 2);
  EXPECT_DOUBLE_EQ(statistics.max(), 9);
}

TEST(DurationStatistics, SmallDeviationsOfLongDurationsAreNotLost) {
  // Around 1000 s, one nanosecond apart: (1000 s)^2 and (1 ns)^2 lie 24 digits from each other.
  const DurationStatistics statistics = Of({1000, 1000 + 1e-9, 1000 + 2e-9});
  EXPECT_NEAR(statistics.standard_deviation() / (1e-9 * std::sqrt(2.0 / 3)), 1, 1e-9);
}

TEST(DurationStatistics, MergeIsExactAssociativeAndCommutative) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> durations(-7, 3);
  for (int trial = 0; trial < 200; ++trial) {
    DurationStatistics parts[3];
    DurationStatistics all;
    for (DurationStatistics& part : parts) {
      for (uint64_t n = random() % 50; n > 0; --n) {
        const double duration = durations(random);
        part.AddSeconds(duration);
        all.AddSeconds(duration);
      }
    }
    DurationStatistics left = parts[0];
    left.Merge(parts[1]);
    left.Merge(parts[2]);
    DurationStatistics right = parts[2];
    right.Merge(parts[1]);
    right.Merge(parts[0]);
    ASSERT_EQ(left, all);
    ASSERT_EQ(right, all);
  }
}

TEST(DurationStatistics, SurviveTheTripThroughProtoBitForBit) {
  const DurationStatistics statistics = Of({1e-9, 3.25, 1e5, 0.1});
  EXPECT_EQ(DurationStatistics::FromProto(statistics.ToProto()).value(), statistics);
}

TEST(DurationStatistics, AreTakenFromRoundedNumbersWhereTheExactSumsAreMissing) {
  Statistics proto = Of({1, 2, 4}).ToProto();
  proto.clear_exact();
  const DurationStatistics statistics = DurationStatistics::FromProto(proto).value();
  EXPECT_NEAR(statistics.total(), 7, 1e-9);
  EXPECT_NEAR(statistics.standard_deviation(), std::sqrt(14.0) / 3, 1e-9);
  EXPECT_EQ(statistics.max(), 4);
}

TEST(DurationStatistics, RoundedNumbersOfEqualDurationsDoNotDeviate) {
  for (int i = 1; i < 20; ++i) {
    const double seconds = 0.0123456789012 * i;
    Statistics proto = Of({seconds, seconds, seconds}).ToProto();
    proto.clear_exact();
    EXPECT_NEAR(DurationStatistics::FromProto(proto)->standard_deviation(), 0, 1e-7 * seconds) << seconds;
  }
}

TEST(DurationStatistics, NumbersThatNoDurationsHaveAreRefused) {
  const Statistics good = Of({1, 2}).ToProto();
  Statistics negative = good;
  negative.set_count(-1);
  EXPECT_FALSE(DurationStatistics::FromProto(negative).ok());
  Statistics not_a_number = good;
  not_a_number.set_total(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(DurationStatistics::FromProto(not_a_number).ok());
  Statistics crossed = good;
  crossed.set_min(3);
  EXPECT_FALSE(DurationStatistics::FromProto(crossed).ok());
  Statistics endless = good;
  endless.clear_exact();
  endless.set_total(1e300);
  EXPECT_FALSE(DurationStatistics::FromProto(endless).ok());
}

TEST(DurationStatistics, ExactSumsThatContradictEachOtherAreRefused) {
  const Statistics good = Of({1, 2}).ToProto();
  Statistics too_long = good;
  too_long.mutable_exact()->set_total_high(1);
  EXPECT_FALSE(DurationStatistics::FromProto(too_long).ok());
  Statistics too_small_squares = good;
  too_small_squares.mutable_exact()->set_squares_high(0);
  too_small_squares.mutable_exact()->set_squares_low(0);
  EXPECT_FALSE(DurationStatistics::FromProto(too_small_squares).ok());
}

TEST(DurationStatistics, QuantilesOfMergedPartsAreThoseOfAll) {
  DurationStatistics low, high;
  for (int i = 1; i <= 500; ++i) {
    low.AddSeconds(i * 1e-3);
    high.AddSeconds((500 + i) * 1e-3);
  }
  high.Merge(low);
  EXPECT_NEAR(*high.Quantile(0.5), 0.5, 0.005);
  EXPECT_NEAR(*high.Quantile(0.99), 0.99, 0.0099);
  EXPECT_EQ(*high.Quantile(1), 1);
  const Statistics proto = high.ToProto();
  EXPECT_EQ(proto.p90(), *high.Quantile(0.9));
  EXPECT_EQ(DurationStatistics::FromProto(proto).value(), high);
}

TEST(DurationStatistics, QuantilesAreUnknownWherePartOfTheDurationsCameWithoutASketch) {
  Statistics proto = Of({1, 2}).ToProto();
  proto.clear_sketch();
  DurationStatistics merged = Of({3});
  merged.Merge(DurationStatistics::FromProto(proto).value());
  EXPECT_FALSE(merged.Quantile(0.5).has_value());
  EXPECT_FALSE(merged.ToProto().has_p50());
  EXPECT_FALSE(DurationStatistics().Quantile(0.5).has_value());
}

TEST(DurationStatistics, ADamagedSketchIsRefused) {
  Statistics beyond = Of({1, 2}).ToProto();
  beyond.mutable_sketch()->set_bucket_step(0, 1u << 31);
  EXPECT_FALSE(DurationStatistics::FromProto(beyond).ok());
  Statistics uneven = Of({1, 2}).ToProto();
  uneven.mutable_sketch()->add_count(1);
  EXPECT_FALSE(DurationStatistics::FromProto(uneven).ok());
}

TEST(DurationStatistics, NegativeDurationsCountAsZero) {
  const DurationStatistics statistics = Of({-1, std::numeric_limits<double>::quiet_NaN(), 2});
  EXPECT_EQ(statistics.count(), 3);
  EXPECT_EQ(statistics.total(), 2);
}

}  // namespace
}  // namespace ott
