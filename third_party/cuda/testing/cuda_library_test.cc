// Without a device: what nvcc compiled links, and the launch says why it cannot happen.

#include <cuda_runtime_api.h>

#include "gtest/gtest.h"
#include "ott/third_party/cuda/testing/scale.h"

namespace ott {
namespace {

TEST(CudaLibrary, KernelLinksAndItsLaunchAgreesWithTheRuntimeOnTheDevice) {
  int devices = 0;
  const cudaError_t of_runtime = cudaGetDeviceCount(&devices);
  EXPECT_EQ(Scale(nullptr, 0, 2.0f), of_runtime) << cudaGetErrorString(of_runtime);
}

}  // namespace
}  // namespace ott
