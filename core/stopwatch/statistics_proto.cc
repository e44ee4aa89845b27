// Conversion of statistics to and from protobuf, apart from the rest so that a plug-in that only measures
// links no generated message: protobuf aborts where two shared objects register the same one.

#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {
namespace {

Uint128 FromHalves(uint64_t high, uint64_t low) { return Uint128{high} << 64 | low; }

bool IsDuration(double seconds) { return seconds >= 0 && seconds <= std::numeric_limits<double>::max(); }

// Returns the part of the sum of squares that the mean alone accounts for; nullopt for more than 128 bits.
std::optional<Uint128> LeastSquares(uint64_t count, Uint128 total) {
  Uint128 squares;
  if (__builtin_mul_overflow(total / count, total + total % count, &squares)) return std::nullopt;
  return squares;
}

// Returns true if durations with these sums can exist.
bool AreSumsOfDurations(uint64_t count, Uint128 total, Uint128 squares, uint64_t min, uint64_t max) {
  if (total < Uint128{min} * count || total > Uint128{max} * count) return false;
  const std::optional<Uint128> least_squares = LeastSquares(count, total);
  return least_squares.has_value() && *least_squares <= squares;
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

absl::StatusOr<DurationStatistics> FromExact(const Statistics& proto) {
  const uint64_t count = static_cast<uint64_t>(proto.count());
  const ExactSums& exact = proto.exact();
  const Uint128 total = FromHalves(exact.total_high(), exact.total_low());
  const Uint128 squares = FromHalves(exact.squares_high(), exact.squares_low());
  if (!AreSumsOfDurations(count, total, squares, exact.min(), exact.max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the exact sums of ", count, " durations contradict each other; the file is damaged"));
  }
  return DurationStatistics::FromSums(count, total, squares, exact.min(), exact.max());
}

absl::StatusOr<DurationStatistics> FromRounded(const Statistics& proto) {
  constexpr double kLimit128 = 3.4e38;  // just below 2^128
  constexpr double kLimit64 = 1.8e19;   // just below 2^64
  const auto count = static_cast<uint64_t>(proto.count());
  const double total = proto.total() * kPicosecondsPerSecond + 0.5;
  const double deviations = proto.squared_deviations() * kPicosecondsPerSecond * kPicosecondsPerSecond + 0.5;
  const double max = proto.max() * kPicosecondsPerSecond + 0.5;
  std::optional<Uint128> squares;
  if (total < kLimit128 && deviations < kLimit128 && max < kLimit64) {
    squares = LeastSquares(count, static_cast<Uint128>(total));
  }
  if (!squares.has_value() || __builtin_add_overflow(*squares, static_cast<Uint128>(deviations), &*squares)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a total of ", proto.total(), " s with a maximum of ", proto.max(), " s is too long"));
  }
  return DurationStatistics::FromSums(count, static_cast<Uint128>(total), *squares,
                                      static_cast<uint64_t>(proto.min() * kPicosecondsPerSecond + 0.5),
                                      static_cast<uint64_t>(max));
}

absl::StatusOr<QuantileSketch> SketchFromProto(const DurationSketch& proto) {
  QuantileSketch sketch;
  uint64_t bucket = 0;
  if (proto.bucket_step_size() == proto.count_size()) {
    for (int i = 0; i < proto.count_size(); ++i) {
      bucket += proto.bucket_step(i);
      if (bucket >= QuantileSketch::kNumBuckets) break;
      sketch.AddToBucket(static_cast<int>(bucket), proto.count(i));
    }
    if (bucket < QuantileSketch::kNumBuckets) return sketch;
  }
  return absl::InvalidArgumentError(
      "a sketch of durations has buckets that do not exist; the file is damaged");
}

}  // namespace

absl::StatusOr<DurationStatistics> DurationStatistics::FromProto(const Statistics& proto) {
  OTT_RETURN_IF_ERROR(Check(proto));
  if (proto.count() == 0) return DurationStatistics();
  OTT_ASSIGN_OR_RETURN(DurationStatistics result, proto.has_exact() ? FromExact(proto) : FromRounded(proto));
  OTT_ASSIGN_OR_RETURN(result.sketch_, SketchFromProto(proto.sketch()));
  return result;
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
  if (sketch_.count() < count_) return proto;
  int last = 0;
  for (const auto& [bucket, buckets_count] : sketch_.buckets()) {
    proto.mutable_sketch()->add_bucket_step(static_cast<uint32_t>(bucket - last));
    proto.mutable_sketch()->add_count(buckets_count);
    last = bucket;
  }
  proto.set_p50(*Quantile(0.5));
  proto.set_p90(*Quantile(0.9));
  proto.set_p99(*Quantile(0.99));
  return proto;
}

}  // namespace ott
