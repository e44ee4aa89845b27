#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/digest.h"
#include "ott/core/digest/digest_on_device.h"
#include "ott/third_party/cuda/testing/leak_check.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

std::vector<uint8_t> RandomBytes(int64_t size) {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Bytes on the host, and the same ones on a device.
class DigestOnDeviceTest : public testing::Test {
 protected:
  static constexpr int64_t kBytes = 5 * kDigestBlockBytes + 1000;

  DigestOnDeviceTest() {
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, bytes_.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    device_.kind = Device::Kind::kCuda;
    device_.stream = stream_;
  }
  ~DigestOnDeviceTest() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }

  // The digests of the same view of both.
  void ExpectEqual(DType dtype, int64_t offset, const Dims& shape, const Dims& strides) {
    const TensorDigest actual = ComputeDigest(TensorView(static_cast<const uint8_t*>(memory_) + offset, dtype,
                                                         shape, strides, device_))
                                    .value();
    const TensorDigest expected =
        ComputeDigest(TensorView(bytes_.data() + offset, dtype, shape, strides)).value();
    EXPECT_EQ(actual.root, expected.root) << Name(dtype) << ShapeToString(shape) << " at " << offset;
    EXPECT_EQ(actual.leaves, expected.leaves);
  }

  const std::vector<uint8_t> bytes_ = RandomBytes(kBytes);
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Device device_;
};

TEST_F(DigestOnDeviceTest, IsTheHostsForAnySizeAndAlignment) {
  for (const int64_t offset : {0, 1, 8, 100}) {
    for (const int64_t size :
         {int64_t{0}, int64_t{1}, int64_t{8}, int64_t{257}, kDigestBlockBytes, kBytes - offset}) {
      ExpectEqual(DType::kUInt8, offset, {size}, {1});
    }
  }
}

TEST_F(DigestOnDeviceTest, IsTheHostsForAnyDTypeShapeAndStrides) {
  for (const DTypeInfo& dtype : kDTypes) {
    ExpectEqual(dtype.dtype, 0, {}, {});
    ExpectEqual(dtype.dtype, 0, {3, 5, 7}, {35, 7, 1});
    ExpectEqual(dtype.dtype, 16, {41, 100}, {100, 1});
    // Transposed, with gaps, repeated, and backwards.
    ExpectEqual(dtype.dtype, 0, {5, 3}, {1, 5});
    ExpectEqual(dtype.dtype, 0, {4, 8}, {20, 2});
    ExpectEqual(dtype.dtype, 0, {4, 8}, {0, 1});
    ExpectEqual(dtype.dtype, 32 * 99, {100}, {-1});
  }
}

TEST_F(DigestOnDeviceTest, TellsErrorsAndLeaksNothing) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "errors of a GPU cannot be had at will";
  ExpectErrorsAreToldAndNothingLeaks([&] {
    const absl::StatusOr<TensorDigest> digest =
        ComputeDigest(TensorView(memory_, DType::kUInt8, {kBytes}, device_));
    if (digest.ok()) {
      EXPECT_EQ(digest->root, ComputeDigest(TensorView(bytes_.data(), DType::kUInt8, {kBytes}))->root);
    }
    return digest.status();
  });
}

TEST_F(DigestOnDeviceTest, IsOfItsMomentWhateverTheStreamGetsLater) {
  const TensorView view(memory_, DType::kUInt8, {kBytes}, device_);
  const TensorDigest expected = ComputeDigest(TensorView(bytes_.data(), DType::kUInt8, {kBytes})).value();
  for (int seed = 0; seed < 20; ++seed) {
    if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
    ASSERT_EQ(cudaMemcpyAsync(memory_, bytes_.data(), kBytes, cudaMemcpyHostToDevice, stream_), cudaSuccess);
    const auto digest = StartDigestOnDevice(view);
    ASSERT_TRUE(digest.ok()) << digest.status();
    const Tensor tensor = WithDigest(*digest);
    EXPECT_EQ(FindDigest(tensor), digest->get());
    EXPECT_EQ((*digest)->Block(5).value(), std::string(bytes_.end() - 1000, bytes_.end()));
    ASSERT_EQ(cudaMemsetAsync(memory_, seed, kDigestBlockBytes, stream_), cudaSuccess);
    EXPECT_EQ((*digest)->Root().value(), expected.root);
    EXPECT_EQ((*digest)->Leaves().value(), expected.leaves);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_TRUE(absl::IsFailedPrecondition((*digest)->Block(0).status()));
  }
  EXPECT_EQ(FindDigest(Tensor{view, nullptr}), nullptr);
}

TEST_F(DigestOnDeviceTest, OnlyWhatIsAskedForComesToTheHost) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "a GPU does not count bytes";
  const auto digest = StartDigestOnDevice(TensorView(memory_, DType::kUInt8, {kBytes}, device_)).value();
  CudaStandIn().Reset(1);
  EXPECT_TRUE(digest->Root().ok());
  EXPECT_EQ(CudaStandIn().Counts().bytes_to_host, 16);
  EXPECT_TRUE(digest->Leaves().ok());
  EXPECT_EQ(CudaStandIn().Counts().bytes_to_host, 16 + 6 * 16);
  EXPECT_TRUE(digest->Block(1).ok());
  EXPECT_EQ(CudaStandIn().Counts().bytes_to_host, 16 + 6 * 16 + 16 + kDigestBlockBytes);
}

// At least 0.8 of the bandwidth with which a kernel that only reads gets the bytes: cudaMemcpy reads and
// writes.
TEST(DigestOnDeviceSpeed, IsAsFastAsReading) {
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
  const float digest = milliseconds([&] { ASSERT_TRUE((*StartDigestOnDevice(view))->Root().ok()); });
  const float copying =
      milliseconds([&] { cudaMemcpyAsync(copy, memory, kBytes, cudaMemcpyDeviceToDevice); });
  std::printf("digest %.0f GB/s, copy (read and write) %.0f GB/s\n", kBytes / digest * 1e-6,
              2 * kBytes / copying * 1e-6);
  // A check of a model starts the digests of all its tensors, and then reads them.
  constexpr int kTensors = 200;
  const TensorView small(memory, DType::kUInt8, {1 << 20}, device);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::shared_ptr<const DigestOnDevice>> started;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kTensors; ++i) started.push_back(*StartDigestOnDevice(small));
    const std::chrono::duration<double, std::micro> to_start = std::chrono::steady_clock::now() - start;
    for (const auto& one : started) ASSERT_TRUE(one->Root().ok());
    const std::chrono::duration<double, std::micro> in_all = std::chrono::steady_clock::now() - start;
    std::printf("a digest of 1 MiB takes the host %.1f us to start, and %.1f us in all\n",
                to_start.count() / kTensors, in_all.count() / kTensors);
  }
  EXPECT_LT(digest, copying / 2 / 0.8f);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFree(memory);
  cudaFree(copy);
}

}  // namespace
}  // namespace ott
