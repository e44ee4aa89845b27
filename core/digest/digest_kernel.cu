#include "ott/core/digest/digest_arithmetic.h"
#include "ott/core/digest/digest_kernel.h"

namespace ott::internal {
namespace {

constexpr int kWarpsAtOnce = 8;
constexpr int kThreads = kWarpsAtOnce * kDigestLanes;
constexpr int64_t kMaxThreadBlocks = 1 << 16;

// Each of the warp's threads gets the sums over all.
__device__ void AddOverWarp(DigestLane& sums) {
  for (int offset = kDigestLanes / 2; offset > 0; offset /= 2) {
    sums.a += __shfl_xor_sync(0xffffffffu, sums.a, offset);
    sums.b += __shfl_xor_sync(0xffffffffu, sums.b, offset);
  }
}

template <bool kAligned>
__global__ void DigestKernel(const unsigned char* data, int64_t num_bytes, int64_t block_bytes,
                             int64_t num_leaves, uint64_t* leaves) {
  const int lane = threadIdx.x % kDigestLanes;
  const int64_t first = int64_t{blockIdx.x} * kWarpsAtOnce + threadIdx.x / kDigestLanes;
  for (int64_t leaf = first; leaf < num_leaves; leaf += int64_t{gridDim.x} * kWarpsAtOnce) {
    const int64_t begin = leaf * block_bytes;
    const int64_t size = num_bytes - begin < block_bytes ? num_bytes - begin : block_bytes;
    DigestLane sums = DigestOfLane<kAligned>(data + begin, size, lane);
    AddOverWarp(sums);
    if (lane == 0) {
      const DigestLane halves = DigestLeaf(sums, size);
      leaves[2 * leaf] = halves.a;
      leaves[2 * leaf + 1] = halves.b;
    }
  }
}

// One block of threads: a leaf is 64 KiB of the tensor, so there are few.
__global__ void DigestRootKernel(DigestLane header, const uint64_t* leaves, int64_t num_leaves,
                                 uint64_t* root) {
  __shared__ DigestLane of_warps[kThreads / kDigestLanes];
  DigestLane sums{};
  for (int64_t leaf = threadIdx.x; leaf < num_leaves; leaf += kThreads) {
    const DigestLane part = DigestPart({leaves[2 * leaf], leaves[2 * leaf + 1]}, leaf);
    sums.a += part.a;
    sums.b += part.b;
  }
  AddOverWarp(sums);
  if (threadIdx.x % kDigestLanes == 0) of_warps[threadIdx.x / kDigestLanes] = sums;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kThreads / kDigestLanes; ++warp) {
    sums.a += of_warps[warp].a;
    sums.b += of_warps[warp].b;
  }
  const DigestLane halves = AbsorbIntoRoot(header, sums);
  root[0] = halves.a;
  root[1] = halves.b;
}

}  // namespace

cudaError_t LaunchDigestKernel(const void* data, int64_t num_bytes, int64_t block_bytes, uint64_t* leaves,
                               cudaStream_t stream) {
  const int64_t num_leaves = (num_bytes + block_bytes - 1) / block_bytes;
  const int64_t wanted = (num_leaves + kWarpsAtOnce - 1) / kWarpsAtOnce;
  const unsigned int grid = static_cast<unsigned int>(wanted < kMaxThreadBlocks ? wanted : kMaxThreadBlocks);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % sizeof(uint64_t) == 0;
  const auto* const bytes = static_cast<const unsigned char*>(data);
  if (aligned) {
    DigestKernel<true><<<grid, kThreads, 0, stream>>>(bytes, num_bytes, block_bytes, num_leaves, leaves);
  } else {
    DigestKernel<false><<<grid, kThreads, 0, stream>>>(bytes, num_bytes, block_bytes, num_leaves, leaves);
  }
  return cudaGetLastError();
}

cudaError_t LaunchDigestRootKernel(uint64_t low, uint64_t high, const uint64_t* leaves, int64_t num_leaves,
                                   uint64_t* root, cudaStream_t stream) {
  DigestRootKernel<<<1, kThreads, 0, stream>>>(DigestLane{low, high}, leaves, num_leaves, root);
  return cudaGetLastError();
}

}  // namespace ott::internal
