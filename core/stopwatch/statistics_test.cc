#include "ott/core/stopwatch/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
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

// Up to (1000 s)^2 and (1 ps)^2, which lie 30 digits from each other.
TEST(DurationStatistics, MatchTheirDefinitionsHoweverTheyAreMerged) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const uint64_t longest = uint64_t{1} << random() % 50,
                   spread = uint64_t{1} << random() % (trial % 4 == 0 ? 50 : 10);
    DurationStatistics statistics, parts[3];
    Uint128 count = 0, total = 0, squares = 0;
    std::vector<uint64_t> durations(1 + random() % (trial % 8 == 0 ? 1000 : 20));
    for (uint64_t& duration : durations) {
      duration = longest + random() % spread;
      statistics.AddPicoseconds(duration);
      parts[random() % 3].AddPicoseconds(duration);
      ++count;
      total += duration;
      squares += Uint128{duration} * duration;
    }
    for (const int first : {0, 2}) {
      DurationStatistics merged = parts[first];
      merged.Merge(parts[1]);
      merged.Merge(parts[2 - first]);
      EXPECT_EQ(merged, statistics);
    }
    std::sort(durations.begin(), durations.end());
    const auto n = static_cast<double>(count);
    EXPECT_EQ(statistics.count(), n);
    EXPECT_EQ(DurationStatistics::FromProto(statistics.ToProto()).value(), statistics);
    EXPECT_DOUBLE_EQ(statistics.total(), static_cast<double>(total) * 1e-12);
    EXPECT_DOUBLE_EQ(statistics.mean(), static_cast<double>(total) * 1e-12 / n);
    EXPECT_DOUBLE_EQ(statistics.min(), static_cast<double>(durations.front()) * 1e-12);
    EXPECT_DOUBLE_EQ(statistics.max(), static_cast<double>(durations.back()) * 1e-12);
    for (const double part : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto below = static_cast<size_t>(std::max(0.0, std::ceil(part * n - 1e-9) - 1));
      const double exact = static_cast<double>(durations[below]) * 1e-12;
      EXPECT_NEAR(*statistics.Quantile(part), exact, QuantileSketch::kRelativeError * exact);
      EXPECT_GE(*statistics.Quantile(part), statistics.min());
      EXPECT_LE(*statistics.Quantile(part), statistics.max());
    }
    const Statistics proto = statistics.ToProto();
    EXPECT_EQ(std::vector<double>({proto.total(), proto.mean(), proto.squared_deviations(), proto.min(),
                                   proto.p50(), proto.p90(), proto.p99(), proto.max()}),
              std::vector<double>({statistics.total(), statistics.mean(), statistics.squared_deviations(),
                                   statistics.min(), *statistics.Quantile(0.5), *statistics.Quantile(0.9),
                                   *statistics.Quantile(0.99), statistics.max()}));
    const double deviations = static_cast<double>(count * squares - total * total) / n * 1e-24;
    EXPECT_NEAR(statistics.squared_deviations(), deviations, 1e-9 * deviations);
    EXPECT_NEAR(statistics.standard_deviation(), std::sqrt(deviations / n), 1e-9 * std::sqrt(deviations));
  }
}

TEST(DurationStatistics, AreTakenFromRoundedNumbersWhereTheExactSumsAreMissing) {
  const auto rounded = [](const std::vector<double>& seconds) {
    Statistics proto = Of(seconds).ToProto();
    proto.clear_exact();
    return DurationStatistics::FromProto(proto).value();
  };
  const DurationStatistics statistics = rounded({1, 2, 4});
  EXPECT_NEAR(statistics.total(), 7, 1e-9);
  EXPECT_NEAR(statistics.standard_deviation(), std::sqrt(14.0) / 3, 1e-9);
  EXPECT_EQ(statistics.max(), 4);
  // Equal ones do not deviate.
  for (int i = 1; i < 20; ++i) {
    const double seconds = 0.0123456789012 * i;
    EXPECT_NEAR(rounded({seconds, seconds, seconds}).standard_deviation(), 0, 1e-7 * seconds) << seconds;
  }
}

TEST(DurationStatistics, NumbersThatNoDurationsHaveAreRefused) {
  const Statistics good = Of({1, 2}).ToProto();
  const std::vector<void (*)(Statistics&)> damages = {
      [](Statistics& proto) { proto.set_count(-1); },
      [](Statistics& proto) { proto.set_min(3); },
      [](Statistics& proto) {
        proto.clear_exact();
        proto.set_total(1e300);
      },
      [](Statistics& proto) { proto.mutable_sketch()->set_bucket_step(0, 1u << 31); },
      [](Statistics& proto) {
        proto.mutable_sketch()->clear_bucket_step();
        for (const uint32_t step : {1u, uint32_t{QuantileSketch::kNumBuckets} - 1})
          proto.mutable_sketch()->add_bucket_step(step);
      },
      [](Statistics& proto) { proto.mutable_sketch()->add_count(1); }};
  for (size_t i = 0; i < damages.size(); ++i) {
    Statistics damaged = good;
    damages[i](damaged);
    EXPECT_FALSE(DurationStatistics::FromProto(damaged).ok()) << i;
  }
  for (const auto set : {&Statistics::set_total, &Statistics::set_squared_deviations, &Statistics::set_min,
                         &Statistics::set_max}) {
    Statistics damaged = good;
    (damaged.*set)(std::numeric_limits<double>::quiet_NaN());
    EXPECT_FALSE(DurationStatistics::FromProto(damaged).ok());
  }
}

// Three durations from 5 to 9 picoseconds have few possible sums and squares.
TEST(DurationStatistics, ExactSumsThatContradictEachOtherAreRefused) {
  const auto is_read = [](uint64_t total, uint64_t squares, uint64_t min, uint64_t max) {
    Statistics proto;
    proto.set_count(3);
    ExactSums& exact = *proto.mutable_exact();
    exact.set_total_low(total);
    exact.set_squares_low(squares);
    exact.set_min(min);
    exact.set_max(max);
    const bool is_ok = DurationStatistics::FromProto(proto).ok();
    exact.set_total_high(1);
    EXPECT_EQ(DurationStatistics::FromProto(proto).status().message(),
              "the exact sums of 3 durations contradict each other; the file is damaged");
    return is_ok;
  };
  for (uint64_t total = 14; total <= 28; ++total)
    EXPECT_EQ(is_read(total, 1000, 5, 9), total >= 15 && total <= 27) << total;
  for (uint64_t squares = 130; squares < 140; ++squares)
    EXPECT_EQ(is_read(20, squares, 5, 9), squares >= 6 * (20 + 2)) << squares;
  // Their squares take more than 128 bits.
  Statistics longest;
  longest.set_count(3);
  ExactSums& exact = *longest.mutable_exact();
  exact.set_total_high(2);
  exact.set_total_low(UINT64_MAX - 2);
  exact.set_min(UINT64_MAX);
  exact.set_max(UINT64_MAX);
  EXPECT_FALSE(DurationStatistics::FromProto(longest).ok());
  EXPECT_TRUE(is_read(21, 147, 7, 7));
  EXPECT_FALSE(is_read(21, 147, 8, 7));
}

TEST(DurationStatistics, WhatIsTooLongForItsSumsIsRefused) {
  const auto is_read = [](int64_t count, double total, double deviations, double max) {
    Statistics proto;
    proto.set_count(count);
    proto.set_total(total);
    proto.set_squared_deviations(deviations);
    proto.set_max(max);
    return DurationStatistics::FromProto(proto).ok();
  };
  EXPECT_TRUE(is_read(1, 1.7e7, 0, 1.7e7));
  EXPECT_FALSE(is_read(1, 1.7e7, 0, 1.9e7));
  EXPECT_FALSE(is_read(1, 1.9e7, 0, 1.7e7));  // its square takes more than 128 bits
  EXPECT_TRUE(is_read(4, 1.9e7, 0, 1.7e7));
  EXPECT_TRUE(is_read(1, 1, 3.3e14, 1));
  EXPECT_FALSE(is_read(1, 1, 3.5e14, 1));
  EXPECT_FALSE(is_read(1, 1.7e7, 3.3e14, 1.7e7));
}

TEST(DurationStatistics, QuantilesAreUnknownWherePartOfTheDurationsCameWithoutASketch) {
  Statistics proto = Of({1, 2}).ToProto();
  proto.clear_sketch();
  DurationStatistics merged = Of({3});
  merged.Merge(DurationStatistics::FromProto(proto).value());
  EXPECT_FALSE(merged.Quantile(0.5).has_value());
  EXPECT_FALSE(merged.ToProto().has_p50());
  const DurationStatistics none = DurationStatistics::FromProto(DurationStatistics().ToProto()).value();
  EXPECT_FALSE(none.Quantile(0.5).has_value());
  EXPECT_EQ(
      std::vector<double>({none.mean(), none.standard_deviation(), none.squared_deviations(), none.min()}),
      std::vector<double>(4, 0));
}

TEST(DurationStatistics, NegativeDurationsCountAsZero) {
  const DurationStatistics statistics = Of({-1, std::numeric_limits<double>::quiet_NaN(), 2});
  EXPECT_EQ(statistics.count(), 3);
  EXPECT_EQ(statistics.total(), 2);
}

}  // namespace
}  // namespace ott
