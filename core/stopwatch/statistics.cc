#include "ott/core/stopwatch/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace ott {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr double kPicosecondsPerSecond = 1e12;

Uint128 FromHalves(uint64_t high, uint64_t low) { return Uint128{high} << 64 | low; }

// Negative values and NaN give 0, too large ones the largest.
uint64_t ToPicoseconds(double seconds) {
  const double picoseconds = std::round(seconds * kPicosecondsPerSecond);
  if (!(picoseconds > 0)) return 0;
  constexpr double kLimit = 18446744073709551616.0;  // 2^64
  return picoseconds < kLimit ? static_cast<uint64_t>(picoseconds) : std::numeric_limits<uint64_t>::max();
}

bool IsDuration(double seconds) { return seconds >= 0 && seconds <= std::numeric_limits<double>::max(); }

// Whether durations with these sums can exist: none below min or above max, and sum of squares at least what
// the mean alone accounts for.
bool AreSumsOfDurations(uint64_t count, Uint128 total, Uint128 squares, uint64_t min, uint64_t max) {
  if (min > max || total < Uint128{min} * count || total > Uint128{max} * count) return false;
  const Uint128 q = total / count;
  const Uint128 r = total % count;
  Uint128 least_squares;
  return !__builtin_mul_overflow(q, total + r, &least_squares) && least_squares <= squares;
}

absl::Status Check(const Statistics& proto) {
  if (proto.count() < 0 || !IsDuration(proto.total()) || !IsDuration(proto.squared_deviations()) ||
      !IsDuration(proto.min()) || !IsDuration(proto.max()) || proto.min() > proto.max()) {
    return absl::InvalidArgumentError(absl::StrCat("statistics of durations cannot have count ",
                                                   proto.count(), ", total ", proto.total(),
                                                   ", squared deviations ", proto.squared_deviations(),
                                                   ", minimum ", proto.min(), ", maximum ", proto.max()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DurationStatistics> DurationStatistics::FromProto(const Statistics& proto) {
  if (absl::Status status = Check(proto); !status.ok()) return status;
  const uint64_t count = static_cast<uint64_t>(proto.count());
  if (count == 0) return DurationStatistics();
  if (proto.has_exact()) {
    const ExactSums& exact = proto.exact();
    const Uint128 total = FromHalves(exact.total_high(), exact.total_low());
    const Uint128 squares = FromHalves(exact.squares_high(), exact.squares_low());
    if (!AreSumsOfDurations(count, total, squares, exact.min(), exact.max())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the exact sums of ", count, " durations contradict each other; the file is damaged"));
    }
    return FromSums(count, total, squares, exact.min(), exact.max());
  }
  const double total = proto.total() * kPicosecondsPerSecond;
  const double squares = proto.squared_deviations() * kPicosecondsPerSecond * kPicosecondsPerSecond +
                         total * total / static_cast<double>(count);
  constexpr double kLimit = 3.4e38;  // just below 2^128
  if (!(total < kLimit && squares < kLimit)) {
    return absl::InvalidArgumentError(absl::StrCat("a total of ", proto.total(), " seconds is too long"));
  }
  return FromSums(count, static_cast<Uint128>(total), static_cast<Uint128>(squares),
                  ToPicoseconds(proto.min()), ToPicoseconds(proto.max()));
}

DurationStatistics DurationStatistics::FromSums(uint64_t count, Uint128 total, Uint128 squares, uint64_t min,
                                                uint64_t max) {
  DurationStatistics result;
  result.count_ = count;
  result.total_ = total;
  result.squares_ = squares;
  result.min_ = min;
  result.max_ = max;
  return result;
}

void DurationStatistics::AddPicoseconds(uint64_t duration) {
  Merge(FromSums(1, duration, Uint128{duration} * duration, duration, duration));
}

void DurationStatistics::AddSeconds(double duration) { AddPicoseconds(ToPicoseconds(duration)); }

void DurationStatistics::Merge(const DurationStatistics& other) {
  if (other.count_ == 0) return;
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  total_ += other.total_;
  squares_ += other.squares_;
}

Statistics DurationStatistics::ToProto() const {
  Statistics proto;
  if (count_ == 0) return proto;
  proto.set_count(count());
  proto.set_total(total());
  proto.set_mean(mean());
  proto.set_squared_deviations(squared_deviations());
  proto.set_min(min());
  proto.set_max(max());
  ExactSums& exact = *proto.mutable_exact();
  exact.set_total_low(static_cast<uint64_t>(total_));
  exact.set_total_high(static_cast<uint64_t>(total_ >> 64));
  exact.set_squares_low(static_cast<uint64_t>(squares_));
  exact.set_squares_high(static_cast<uint64_t>(squares_ >> 64));
  exact.set_min(min_);
  exact.set_max(max_);
  return proto;
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

}  // namespace ott
