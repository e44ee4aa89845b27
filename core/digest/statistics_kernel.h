// The digest's kernel, with statistics of the elements: a warp takes a block, and reads each chunk of it for
// the digest and then, from the caches, for the statistics.

#ifndef OTT_CORE_DIGEST_STATISTICS_KERNEL_H_
#define OTT_CORE_DIGEST_STATISTICS_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "ott/core/tensor/device_element.h"

namespace ott::internal {

// Statistics of a block, or of the tensor: as of DigestAndStatistics. Device memory.
struct DeviceStatistics {
  uint64_t digest[2];
  double squares;
  double max_abs;
  int64_t num_nan;
  int64_t num_infinite;
  double sums[16];
};

// blocks: one for each block of block_bytes, the last of which may be shorter. REQUIRES: num_bytes > 0; data
// is aligned to an element
cudaError_t LaunchStatisticsKernel(DeviceElement element, const void* data, int64_t num_bytes,
                                   int64_t block_bytes, DeviceStatistics* blocks, cudaStream_t stream);

// total: that of all blocks, its digest the root. low, high: DigestOfHeader()
cudaError_t LaunchTotalStatisticsKernel(uint64_t low, uint64_t high, const DeviceStatistics* blocks,
                                        int64_t num_blocks, DeviceStatistics* total, cudaStream_t stream);

// A tensor with gaps or in another order than row-major; strides are in bytes.
struct StridedElements {
  static constexpr int kMaxDimensions = 8;

  int num_dimensions;
  int element_bytes;
  int64_t shape[kMaxDimensions];
  int64_t strides[kMaxDimensions];
};

// Lays the elements out one after another, in row-major order. REQUIRES: num_elements > 0
cudaError_t LaunchGatherKernel(const void* data, const StridedElements& layout, int64_t num_elements,
                               void* gathered, cudaStream_t stream);

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_STATISTICS_KERNEL_H_
