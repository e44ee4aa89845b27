#include "ott/third_party/cuda/testing/scale.h"

namespace ott {
namespace {

__global__ void ScaleKernel(float* values, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

}  // namespace

cudaError_t Scale(float* values, int count, float factor) {
  ScaleKernel<<<count / 256 + 1, 256>>>(values, count, factor);
  return cudaGetLastError();
}

}  // namespace ott
