#include "ott/third_party/cuda/testing/stand_in_kernels_for_test.h"

namespace ott {
namespace {

__global__ void ReverseKernel(int* values) {
  __shared__ int shared[256];
  shared[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

template <typename T>
__global__ void SumWarpsKernel(const T* values, T* totals) {
  T sum = values[threadIdx.x];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(&totals[threadIdx.x / 32], sum);
}

__global__ void PokeKernel(Box box) { *box.address = 1; }

__global__ void HangKernel() {
  if (threadIdx.x < 16) __shfl_xor_sync(0xffffffffu, 1, 1);
  __syncthreads();
}

}  // namespace

cudaError_t Reverse(int* values, int threads, cudaStream_t stream) {
  ReverseKernel<<<1, threads, 0, stream>>>(values);
  return cudaGetLastError();
}

cudaError_t SumWarps(const unsigned int* values, unsigned int* totals, int warps, cudaStream_t stream) {
  SumWarpsKernel<unsigned int><<<1, 32 * warps, 0, stream>>>(values, totals);
  return cudaGetLastError();
}

cudaError_t Poke(Box box, cudaStream_t stream) {
  PokeKernel<<<1, 1, 0, stream>>>(box);
  return cudaGetLastError();
}

cudaError_t Hang(cudaStream_t stream) {
  HangKernel<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}

}  // namespace ott
