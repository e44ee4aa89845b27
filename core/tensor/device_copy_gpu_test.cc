#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/tensor/buffer_pool.h"
#include "ott/core/tensor/device_copy.h"
#include "ott/core/tensor/tensor.h"

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
  const Tensor copy = CloneToHost(columns).value();
  const int* const copied = static_cast<const int*>(copy.view.data());
  EXPECT_EQ(std::vector<int>(copied, copied + 8), (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
}

}  // namespace
}  // namespace ott
