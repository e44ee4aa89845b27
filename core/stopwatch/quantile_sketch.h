// Quantiles of durations, from a histogram with buckets of equal relative width.

#ifndef OTT_CORE_STOPWATCH_QUANTILE_SKETCH_H_
#define OTT_CORE_STOPWATCH_QUANTILE_SKETCH_H_

#include <cstdint>
#include <map>

namespace ott {

// A mergeable sketch, after DDSketch (Masson, Rim, Lee, "DDSketch: a fast and fully-mergeable quantile sketch
// with relative-error guarantees", 2019). Each octave [2^k, 2^(k+1)) of picoseconds is divided into 64 equal
// buckets, so a bucket is at most 1/64 of its lower edge wide, and the harmonic mean of its edges is at most
// 1/129 = 0.78 % away from all in it. Counts add up exactly, so merging is associative and commutative, and
// merged sketches are equal to the sketch of all durations together.
//
// A value type; not synchronised.
class QuantileSketch {
 public:
  static constexpr double kRelativeError = 0.01;
  static constexpr int kBucketsPerOctave = 64;
  // Bucket 0 holds durations of 0; below octave 6 each holds one value.
  static constexpr int kNumBuckets = 65 * kBucketsPerOctave;

  static constexpr int BucketOf(uint64_t picoseconds) {
    if (picoseconds == 0) return 0;
    const int octave = 63 - __builtin_clzll(picoseconds);
    const uint64_t from_top = picoseconds << (63 - octave);
    return (octave + 1) * kBucketsPerOctave + static_cast<int>(from_top >> 57 & (kBucketsPerOctave - 1));
  }

  // Returns a value within kRelativeError of all durations in the bucket. REQUIRES: 0 <= bucket < kNumBuckets
  static double ValueOf(int bucket);

  void Add(uint64_t picoseconds, uint64_t count = 1) { AddToBucket(BucketOf(picoseconds), count); }
  void AddToBucket(int bucket, uint64_t count);
  void Merge(const QuantileSketch& other);

  uint64_t count() const { return count_; }
  // Returns the count by bucket, none of them 0.
  const std::map<int, uint64_t>& buckets() const { return buckets_; }

  // Returns the q-quantile in picoseconds, within kRelativeError: the shortest of the durations that at least
  // the share q of them is not longer than. REQUIRES: 0 <= q <= 1, count() > 0
  double Quantile(double q) const;

  friend bool operator==(const QuantileSketch& a, const QuantileSketch& b) {
    return a.buckets_ == b.buckets_;
  }
  friend bool operator!=(const QuantileSketch& a, const QuantileSketch& b) { return !(a == b); }

 private:
  std::map<int, uint64_t> buckets_;
  uint64_t count_ = 0;
};

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_QUANTILE_SKETCH_H_
