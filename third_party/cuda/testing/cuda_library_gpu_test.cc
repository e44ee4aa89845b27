#include <cuda_runtime_api.h>

#include <vector>

#include "gtest/gtest.h"
#include "ott/third_party/cuda/testing/scale.h"

namespace ott {
namespace {

TEST(CudaLibrary, KernelComputes) {
  std::vector<float> values(1000, 3.0f);
  const size_t bytes = values.size() * sizeof(float);
  float* device = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), bytes), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(Scale(device, static_cast<int>(values.size()), 2.0f), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(values.data(), device, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  cudaFree(device);
  EXPECT_EQ(values, std::vector<float>(1000, 6.0f));
}

}  // namespace
}  // namespace ott
