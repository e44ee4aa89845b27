// Kernels of the stand-in's tests.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_KERNELS_FOR_TEST_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_KERNELS_FOR_TEST_H_

#include <cuda_runtime_api.h>

namespace ott {

// One block of `threads` reverses as many values, through shared memory. threads <= 256
cudaError_t Reverse(int* values, int threads, cudaStream_t stream);
// totals[i] += sum of the 32 lanes of warp i.
cudaError_t SumWarps(const unsigned int* values, unsigned int* totals, int warps, cudaStream_t stream);
// Writes 1 to *address, wherever that is: a kernel with a bug.
struct Box {
  int* address;
};
cudaError_t Poke(Box box, cudaStream_t stream);
// Half of the threads wait for the others, which never come.
cudaError_t Hang(cudaStream_t stream);

}  // namespace ott

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_KERNELS_FOR_TEST_H_
