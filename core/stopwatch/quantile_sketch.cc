#include "ott/core/stopwatch/quantile_sketch.h"

#include <algorithm>
#include <cmath>

#include "ott/core/base/check.h"

namespace ott {

double QuantileSketch::ValueOf(int bucket) {
  if (bucket < kBucketsPerOctave) return 0;
  const int octave = bucket / kBucketsPerOctave - 1;
  // In units of 2^octave / 64.
  const double low = kBucketsPerOctave + bucket % kBucketsPerOctave;
  // Durations are whole picoseconds: a bucket narrower than that holds one value.
  if (octave <= 6) return std::ldexp(low, octave - 6);
  return std::ldexp(2 * low * (low + 1) / (2 * low + 1), octave - 6);
}

void QuantileSketch::AddToBucket(int bucket, uint64_t count) {
  if (count == 0) return;
  buckets_[bucket] += count;
  count_ += count;
}

void QuantileSketch::Merge(const QuantileSketch& other) {
  for (const auto& [bucket, count] : other.buckets_) AddToBucket(bucket, count);
}

double QuantileSketch::Quantile(double q) const {
  OTT_CHECK(q >= 0 && q <= 1 && count_ > 0) << "quantile " << q << " of " << count_ << " durations";
  // So many durations come before it; 1e-9: 0.9 * 10 is a little more than 9.
  uint64_t rank = static_cast<uint64_t>(std::max(0.0, std::ceil(q * static_cast<double>(count_) - 1e-9) - 1));
  for (const auto& [bucket, count] : buckets_) {
    if (rank < count) return ValueOf(bucket);
    rank -= count;
  }
  return ValueOf(buckets_.rbegin()->first);
}

}  // namespace ott
