#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/tensor/buffer_pool.h"
#include "ott/core/tensor/device_copy.h"
#include "ott/core/tensor/tensor.h"
#include "ott/third_party/cuda/testing/leak_check.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

class DeviceCopyTest : public testing::Test {
 protected:
  static constexpr int kElements = 1 << 20;

  DeviceCopyTest() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), kElements * sizeof(int)), cudaSuccess);
    std::iota(elements_.begin(), elements_.end(), 0);
    EXPECT_EQ(cudaMemcpy(memory_, elements_.data(), kElements * sizeof(int), cudaMemcpyHostToDevice),
              cudaSuccess);
    device_.kind = Device::Kind::kCuda;
    device_.stream = stream_;
  }
  ~DeviceCopyTest() override {
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }

  // Holds the stream up until released.
  void BlockStream() {
    cudaLaunchHostFunc(
        stream_,
        [](void* released) {
          while (!*static_cast<std::atomic<bool>*>(released)) std::this_thread::yield();
        },
        &released_);
  }

  std::vector<int> elements_ = std::vector<int>(kElements);
  std::atomic<bool> released_{false};
  cudaStream_t stream_ = nullptr;
  int* memory_ = nullptr;
  Device device_;
};

TEST_F(DeviceCopyTest, CopyLiesBetweenTheWorkOfItsStream) {
  // Work before: all bytes become 1. The copy must see it, and not the work behind: all bytes become 2.
  BlockStream();
  ASSERT_EQ(cudaMemsetAsync(memory_, 1, kElements * sizeof(int), stream_), cudaSuccess);
  BufferPool pool(int64_t{1} << 30, AllocatePinned);
  std::vector<CopyDone> done;
  const Tensor copy = StartCloneToHost(
                          TensorView(memory_, DType::kInt32, {kElements}, device_),
                          [&](int64_t size) { return pool.Allocate(size); }, &done)
                          .value();
  ASSERT_EQ(cudaMemsetAsync(memory_, 2, kElements * sizeof(int), stream_), cudaSuccess);
  // We came here although the stream is held up: nobody waited.
  released_ = true;
  ASSERT_EQ(done.size(), 1u);
  ASSERT_TRUE(done[0]().ok());
  const int* const copied = static_cast<const int*>(copy.view.data());
  EXPECT_EQ(std::vector<int>(copied, copied + kElements), std::vector<int>(kElements, 0x01010101));
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(DeviceCopyTest, TensorsWithGapsAreCopied) {
  const TensorView columns(memory_, DType::kInt32, {4, 2}, {1, 4}, device_);
  const TensorView reversed(memory_ + 7, DType::kInt32, {8}, {-1}, device_);
  for (const auto& [view, expected] :
       {std::pair(columns, std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}), {reversed, {7, 6, 5, 4, 3, 2, 1, 0}}}) {
    const Tensor copy = ToHost({view, nullptr}).value();
    const int* const copied = static_cast<const int*>(copy.view.data());
    EXPECT_EQ(std::vector<int>(copied, copied + 8), expected);
  }
}

// The schedules of a stand-in, or a GPU's own.
TEST_F(DeviceCopyTest, TheTensorMayBeOverwrittenAtOnce) {
  BufferPool pool(int64_t{1} << 30, AllocatePinned);
  for (int seed = 1; seed <= 200; ++seed) {
    if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
    const TensorView view(memory_, DType::kUInt8, {1000 + seed}, device_);
    ASSERT_EQ(cudaMemsetAsync(memory_, seed, kElements, stream_), cudaSuccess);
    std::vector<CopyDone> done;
    const Tensor copy = StartCloneToHost(
                            view, [&](int64_t size) { return pool.Allocate(size); }, &done)
                            .value();
    ASSERT_EQ(cudaMemsetAsync(memory_, 0, kElements, stream_), cudaSuccess);
    ASSERT_TRUE(done[0]().ok());
    const auto* const copied = static_cast<const uint8_t*>(copy.view.data());
    ASSERT_EQ(std::vector<int>(copied, copied + 1000 + seed), std::vector<int>(1000 + seed, seed)) << seed;
  }
}

TEST_F(DeviceCopyTest, TheCallersDeviceDoesNotMatter) {
  int num_devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&num_devices), cudaSuccess);
  const int last = num_devices - 1;
  ASSERT_EQ(cudaSetDevice(last), cudaSuccess);
  constexpr int kBytes = 1 << 16;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  Device device;
  device.kind = Device::Kind::kCuda;
  device.ordinal = last;
  for (int seed = 1; seed <= 50; ++seed) {
    if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
    ASSERT_EQ(cudaSetDevice(last), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory, seed, kBytes, nullptr), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    // On the default stream of its own device.
    const Tensor copy = CloneToHost(TensorView(memory, DType::kUInt8, {kBytes}, device)).value();
    const auto* const copied = static_cast<const uint8_t*>(copy.view.data());
    ASSERT_EQ(copied[0], seed);
    ASSERT_EQ(copied[kBytes - 1], seed);
    int current = -1;
    ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0);
  }
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(DeviceCopyTest, ErrorsAreToldAndNothingLeaks) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "errors of a GPU cannot be had at will";
  const TensorView view(memory_, DType::kInt32, {kElements}, device_);
  const auto expect_elements = [&](const Tensor& copy) {
    EXPECT_EQ(std::memcmp(copy.view.data(), elements_.data(), view.num_bytes()), 0);
    return absl::OkStatus();
  };
  ExpectErrorsAreToldAndNothingLeaks([&] {
    const absl::StatusOr<Tensor> copy = CloneToHost(view);
    return copy.ok() ? expect_elements(*copy) : copy.status();
  });
  ExpectErrorsAreToldAndNothingLeaks([&] {
    BufferPool pool(0, AllocatePinned);
    std::vector<CopyDone> done;
    const absl::StatusOr<Tensor> copy = StartCloneToHost(
        view, [&](int64_t size) { return pool.Allocate(size); }, &done);
    if (!copy.ok()) return copy.status();
    const absl::Status status = done[0]();
    return status.ok() ? expect_elements(*copy) : status;
  });
}

}  // namespace
}  // namespace ott
