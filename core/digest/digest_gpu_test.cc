#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/digest.h"

namespace ott {
namespace {

TEST(DigestOnDevice, IsTheHosts) {
  constexpr int64_t kBytes = 5 * kDigestBlockBytes + 1000;
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(kBytes);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(memory, bytes.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  Device device;
  device.kind = Device::Kind::kCuda;
  device.stream = stream;
  for (const int64_t offset : {0, 1, 8, 100}) {
    for (const int64_t size : {int64_t{1}, int64_t{8}, int64_t{257}, kDigestBlockBytes, kBytes - offset}) {
      const auto* const first = static_cast<const uint8_t*>(memory) + offset;
      const TensorDigest actual = ComputeDigest(TensorView(first, DType::kUInt8, {size}, device)).value();
      const TensorDigest expected =
          ComputeDigest(TensorView(bytes.data() + offset, DType::kUInt8, {size})).value();
      EXPECT_EQ(actual.root, expected.root) << size << " bytes at " << offset;
      EXPECT_EQ(actual.leaves, expected.leaves);
    }
  }
  cudaStreamDestroy(stream);
  cudaFree(memory);
}

// At least 0.8 of the bandwidth with which a kernel that only reads gets the bytes: cudaMemcpy reads and
// writes.
TEST(DigestOnDevice, IsAsFastAsReading) {
  constexpr int64_t kBytes = int64_t{2} << 30;
  void* memory = nullptr;
  void* copy = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&copy, kBytes), cudaSuccess);
  ASSERT_EQ(cudaMemset(memory, 7, kBytes), cudaSuccess);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  Device device;
  device.kind = Device::Kind::kCuda;
  const TensorView view(memory, DType::kUInt8, {kBytes}, device);
  const auto milliseconds = [&](const auto& work) {
    work();
    cudaEventRecord(begin);
    work();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float elapsed = 0;
    cudaEventElapsedTime(&elapsed, begin, end);
    return elapsed;
  };
  const float digest = milliseconds([&] { ASSERT_TRUE(ComputeDigest(view).ok()); });
  const float copying =
      milliseconds([&] { cudaMemcpyAsync(copy, memory, kBytes, cudaMemcpyDeviceToDevice); });
  std::printf("digest %.0f GB/s, copy (read and write) %.0f GB/s\n", kBytes / digest * 1e-6,
              2 * kBytes / copying * 1e-6);
  EXPECT_LT(digest, copying / 2 / 0.8f);
  cudaFree(memory);
  cudaFree(copy);
}

}  // namespace
}  // namespace ott
