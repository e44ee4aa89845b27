// Digests and statistics of tensors that stay in device memory.

#ifndef OTT_CORE_DIGEST_STATISTICS_ON_DEVICE_H_
#define OTT_CORE_DIGEST_STATISTICS_ON_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// Statistics of a tensor in device memory at a moment of its stream. Thread-safe.
class StatisticsOnDevice {
 public:
  virtual ~StatisticsOnDevice() = default;

  // Returns those of ComputeDigestAndStatistics(), but for rounding. Waits for them, not for what the stream
  // got after them; 176 bytes come to the host. INTERNAL with CUDA's message where CUDA failed.
  virtual absl::StatusOr<DigestAndStatistics> Get() const = 0;
};

// Returns true if StartStatisticsOnDevice() takes the tensor.
bool HasStatisticsOnDevice(const TensorView& tensor);

// Reads the tensor once, on its stream, behind its work so far and before what it gets later, and returns at
// once. Takes 192 bytes of the device's memory for each 64 KiB, and where the tensor has gaps or is in
// another order than row-major, as much as the tensor for so long. UNIMPLEMENTED in a build without CUDA;
// INTERNAL with CUDA's message where CUDA fails. REQUIRES: HasStatisticsOnDevice(tensor)
absl::StatusOr<std::unique_ptr<const StatisticsOnDevice>> StartStatisticsOnDevice(const TensorView& tensor);

}  // namespace ott

#endif  // OTT_CORE_DIGEST_STATISTICS_ON_DEVICE_H_
