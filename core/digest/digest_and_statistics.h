// A tensor's digest and what it is about in numbers, in one pass over its elements.

#ifndef OTT_CORE_DIGEST_DIGEST_AND_STATISTICS_H_
#define OTT_CORE_DIGEST_DIGEST_AND_STATISTICS_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "ott/core/digest/digest.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// Random sums of a tensor's elements, by which two tensors of which only these are known can be subtracted:
// an AMS sketch (Alon, Matias, Szegedy 1999; Charikar, Chen, Farach-Colton 2002). Element i, with a sign that
// is random but the same for all tensors, is part of one sum. The sums are linear in the
// elements, and the squares of a difference's sums add up to an unbiased estimate of its squared norm.
struct TensorSketch {
  static constexpr int kNumSums = 16;
  // Bounds of the true norm, relative to the estimated one: between these with a chance of 99.8 % (the square
  // is distributed as chi-square with 16 degrees of freedom, over 16).
  static constexpr double kLowFactor = 0.5;
  static constexpr double kHighFactor = 1.57;
  // Differences below so much of the tensors' norm drown in the rounding of the sums.
  static constexpr double kResolution = 1e-6;

  std::array<float, kNumSums> sums{};
};

// Statistics of the elements as numbers; complex ones count as two parts. What is not finite is counted, and
// no part of norm, largest magnitude and sketch; numbers beyond 1e35 are counted as infinite.
struct SketchedStatistics {
  // Euclidean.
  double norm = 0;
  double max_abs = 0;
  int64_t num_nan = 0;
  int64_t num_infinite = 0;
  TensorSketch sketch;
};

struct DigestAndStatistics {
  Digest digest;
  SketchedStatistics statistics;
};

// Returns the root of ComputeDigest(), and statistics. A tensor in device memory stays there
// (statistics_on_device.h), unless the device has no room for it. Errors: as CloneToHost.
absl::StatusOr<DigestAndStatistics> ComputeDigestAndStatistics(const TensorView& tensor);

}  // namespace ott

#endif  // OTT_CORE_DIGEST_DIGEST_AND_STATISTICS_H_
