#ifndef OTT_CORE_COMPARE_DEVICE_COMPARISON_KERNEL_H_
#define OTT_CORE_COMPARE_DEVICE_COMPARISON_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ott/core/tensor/device_element.h"

namespace ott::internal {

// For each block of `block_elements`, two words: the bits of the double that is the sum of squares of its
// elements, and whether bits differ or an element is not finite. REQUIRES: pointers are aligned to an element
cudaError_t LaunchCompareBlocks(DeviceElement element, const void* reference, const void* current,
                                int64_t size, int64_t block_elements, uint64_t* blocks, cudaStream_t stream);

}  // namespace ott::internal

#endif  // OTT_CORE_COMPARE_DEVICE_COMPARISON_KERNEL_H_
