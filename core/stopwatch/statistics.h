// Statistics of durations that merge without loss.

#ifndef OTT_CORE_STOPWATCH_STATISTICS_H_
#define OTT_CORE_STOPWATCH_STATISTICS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "ott/core/stopwatch/quantile_sketch.h"

namespace ott {

class Statistics;  // stopwatch_stats.proto

inline constexpr double kPicosecondsPerSecond = 1e12;

// A sum too large for 64 bits.
__extension__ typedef unsigned __int128 Uint128;

// Count, total, mean, standard deviation, minimum, maximum and quantiles of durations.
//
// Quantiles have a relative error of 1 % (quantile_sketch.h); all else is exact. Kept as integer sums of
// picoseconds and of their squares, so merging is associative, commutative and exact: threads, ranks and runs
// can be added in any order and give the same bits. A duration holds up to 213 days; the sums hold a million
// durations of five hours.
//
// A value type; not synchronised.
//
//   DurationStatistics all_ranks;
//   for (const Statistics& rank : ranks) all_ranks.Merge(DurationStatistics::FromProto(rank).value());
//   printf("%g s +- %g s", all_ranks.mean(), all_ranks.standard_deviation());
class DurationStatistics {
 public:
  DurationStatistics() = default;

  // Returns INVALID_ARGUMENT for numbers that no durations have: negative, NaN, a minimum above the maximum,
  // sums or a sketch that contradict the rest. (Defined in statistics_proto.cc, so that a program that only
  // measures needs no protobuf.)
  static absl::StatusOr<DurationStatistics> FromProto(const Statistics& proto);

  // min, max: 0 if count is 0. sketch: of the same durations, or empty.
  static DurationStatistics FromSums(uint64_t count, Uint128 total, Uint128 squares, uint64_t min,
                                     uint64_t max, QuantileSketch sketch = {});

  void AddPicoseconds(uint64_t duration);
  // Rounds to picoseconds. A negative duration or NaN counts as 0.
  void AddSeconds(double duration);
  void Merge(const DurationStatistics& other);

  Statistics ToProto() const;

  // The times are in seconds, and 0 while count() is 0.
  int64_t count() const { return static_cast<int64_t>(count_); }
  double total() const;
  double mean() const;
  double min() const;
  double max() const;
  // Returns the variance of the durations seen, not an estimate for a larger population: squared_deviations()
  // / count().
  double variance() const;
  double standard_deviation() const;
  // Returns the sum of (duration - mean)^2, in seconds squared.
  double squared_deviations() const;

  // Nullopt if count() is 0, or if part of what was merged came without its sketch.
  // REQUIRES: 0 <= q <= 1
  std::optional<double> Quantile(double q) const;

  const QuantileSketch& sketch() const { return sketch_; }

  friend bool operator==(const DurationStatistics& a, const DurationStatistics& b) {
    return a.count_ == b.count_ && a.total_ == b.total_ && a.squares_ == b.squares_ && a.min_ == b.min_ &&
           a.max_ == b.max_ && a.sketch_ == b.sketch_;
  }
  friend bool operator!=(const DurationStatistics& a, const DurationStatistics& b) { return !(a == b); }

 private:
  uint64_t count_ = 0;
  Uint128 total_ = 0;
  Uint128 squares_ = 0;
  uint64_t min_ = 0;
  uint64_t max_ = 0;
  QuantileSketch sketch_;
};

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_STATISTICS_H_
