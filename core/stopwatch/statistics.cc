#include "ott/core/stopwatch/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ott {
namespace {

constexpr double kPicosecond = 1e-12;

// Negative values and NaN give 0, too large ones the largest.
uint64_t ToPicoseconds(double seconds) {
  const double picoseconds = std::round(seconds * kPicosecondsPerSecond);
  if (!(picoseconds > 0)) return 0;
  constexpr double kLimit = 18446744073709551616.0;  // 2^64
  return picoseconds < kLimit ? static_cast<uint64_t>(picoseconds) : std::numeric_limits<uint64_t>::max();
}

}  // namespace

DurationStatistics DurationStatistics::FromSums(uint64_t count, Uint128 total, Uint128 squares, uint64_t min,
                                                uint64_t max, QuantileSketch sketch) {
  DurationStatistics result;
  result.count_ = count;
  result.total_ = total;
  result.squares_ = squares;
  result.min_ = min;
  result.max_ = max;
  result.sketch_ = std::move(sketch);
  return result;
}

void DurationStatistics::AddPicoseconds(uint64_t duration) {
  Merge(FromSums(1, duration, Uint128{duration} * duration, duration, duration));
  sketch_.Add(duration);
}

void DurationStatistics::AddSeconds(double duration) { AddPicoseconds(ToPicoseconds(duration)); }

void DurationStatistics::Merge(const DurationStatistics& other) {
  if (other.count_ == 0) return;
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  total_ += other.total_;
  squares_ += other.squares_;
  sketch_.Merge(other.sketch_);
}

double DurationStatistics::total() const { return static_cast<double>(total_) * kPicosecond; }
double DurationStatistics::mean() const { return count_ == 0 ? 0 : total() / static_cast<double>(count_); }
double DurationStatistics::min() const { return static_cast<double>(min_) * kPicosecond; }
double DurationStatistics::max() const { return static_cast<double>(max_) * kPicosecond; }

double DurationStatistics::variance() const {
  return count_ == 0 ? 0 : squared_deviations() / static_cast<double>(count_);
}

double DurationStatistics::standard_deviation() const { return std::sqrt(variance()); }

double DurationStatistics::squared_deviations() const {
  if (count_ == 0) return 0;
  // In integers, with q and r the quotient and remainder of total / count:
  // sum (x - mean)^2 = sum x^2 - q (total + r) - r^2 / count. Nothing cancels that was rounded before.
  const Uint128 q = total_ / count_;
  const Uint128 r = total_ % count_;
  const Uint128 deviations_from_q = squares_ - q * (total_ + r);
  const double remainder = static_cast<double>(r);
  const double result =
      static_cast<double>(deviations_from_q) - remainder * remainder / static_cast<double>(count_);
  return std::max(result, 0.0) * kPicosecond * kPicosecond;
}

std::optional<double> DurationStatistics::Quantile(double q) const {
  if (count_ == 0 || sketch_.count() < count_) return std::nullopt;
  return std::clamp(sketch_.Quantile(q) * kPicosecond, min(), max());
}

}  // namespace ott
