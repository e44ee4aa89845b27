#include <cuda_runtime_api.h>

#include <cstdio>

#include "gtest/gtest.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int num_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess || num_devices == 0) {
    std::fprintf(stderr, "This test needs a GPU: %s\n",
                 error != cudaSuccess ? cudaGetErrorString(error) : "there is none");
    return 1;
  }
  return RUN_ALL_TESTS();
}
