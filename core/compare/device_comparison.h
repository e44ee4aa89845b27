// Two tensors in device memory, compared where they are.

#ifndef OTT_CORE_COMPARE_DEVICE_COMPARISON_H_
#define OTT_CORE_COMPARE_DEVICE_COMPARISON_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott::internal {

inline constexpr int64_t kDeviceBlockElements = 16384;

// The comparison of a block of elements by a device.
struct DeviceBlock {
  // Sum of squares, of complex elements of both parts. Only where no elements are needed.
  double norm = 0;
  // Nonzero: bits differ, or an element is not finite.
  uint64_t needs_elements = 0;
};

// Returns true if CompareOnDevice() takes them. REQUIRES: of the same dtype and shape
bool CanCompareOnDevice(const TensorView& reference, const TensorView& current);

// Compares each block, behind the work that the tensors' streams have now; waits for it, and brings 16 bytes
// a block to the host. INTERNAL with CUDA's message where CUDA fails.
absl::StatusOr<std::vector<DeviceBlock>> CompareOnDevice(const TensorView& reference,
                                                         const TensorView& current);

}  // namespace ott::internal

#endif  // OTT_CORE_COMPARE_DEVICE_COMPARISON_H_
