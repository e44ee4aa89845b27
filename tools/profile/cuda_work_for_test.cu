#include <cuda_runtime_api.h>

#include "tools/profile/cuda_work_for_test.h"

namespace ott::profile {
namespace {

template <typename T>
__global__ void AddOne(T* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += 1;
}

}  // namespace

bool WorkOnGpu() {
  constexpr int kCount = 1 << 16;
  float* values = nullptr;
  float first = 0;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaStreamCreate(&stream);
  cudaMalloc(reinterpret_cast<void**>(&values), kCount * sizeof(float));
  cudaMemsetAsync(values, 0, kCount * sizeof(float), stream);
  for (int i = 0; i < kNumLaunches; ++i) AddOne<float><<<kCount / 256, 256, 0, stream>>>(values, kCount);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  AddOne<float><<<kCount / 256, 256, 0, stream>>>(values, kCount);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  int num_devices = 0;
  cudaGetDeviceCount(&num_devices);
  if (num_devices > 1) {
    float* there = nullptr;
    cudaSetDevice(1);
    cudaMalloc(reinterpret_cast<void**>(&there), kCount * sizeof(float));
    cudaSetDevice(0);
    cudaMemcpyPeerAsync(there, 1, values, 0, kCount * sizeof(float), stream);
  }
  cudaMemcpyAsync(&first, values, sizeof(first), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return first == kNumLaunches + 1 && cudaGetLastError() == cudaSuccess;
}

}  // namespace ott::profile
