// The digest's kernel: a warp computes a leaf, each of its threads a lane.

#ifndef OTT_CORE_DIGEST_DIGEST_KERNEL_H_
#define OTT_CORE_DIGEST_DIGEST_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ott::internal {

// leaves: in device memory, two words (low, high) for each block of block_bytes, the last of which may be
// shorter. REQUIRES: num_bytes > 0
cudaError_t LaunchDigestKernel(const void* data, int64_t num_bytes, int64_t block_bytes, uint64_t* leaves,
                               cudaStream_t stream);

// root: in device memory, two words. low, high: DigestOfHeader()
cudaError_t LaunchDigestRootKernel(uint64_t low, uint64_t high, const uint64_t* leaves, int64_t num_leaves,
                                   uint64_t* root, cudaStream_t stream);

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_DIGEST_KERNEL_H_
