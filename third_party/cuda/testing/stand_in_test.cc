// Tests that the stand-in is as strict as it says: each test is a mistake, or a rule, of CUDA.

#include "ott/third_party/cuda/testing/stand_in.h"

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/third_party/cuda/testing/stand_in_kernels_for_test.h"

namespace ott {
namespace {

constexpr int kSeeds = 50;
constexpr size_t kBytes = 10000;

class StandInTest : public testing::Test {
 protected:
  StandInTest() {
    CudaStandIn().Reset(1);
    cudaSetDevice(0);
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaHostAlloc(&pinned_, kBytes, cudaHostAllocDefault), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~StandInTest() override {
    CudaStandIn().Reset(1);
    cudaStreamDestroy(stream_);
    cudaStreamDestroy(other_);
    cudaFreeHost(pinned_);
    cudaFree(memory_);
  }

  // Counts for how many seeds the host finds `value` in what was copied.
  template <typename Work>
  int HowOften(char value, Work work) {
    int often = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      CudaStandIn().Reset(seed);
      cudaMemset(memory_, 0, kBytes);
      cudaDeviceSynchronize();
      work();
      const auto* const bytes = static_cast<const char*>(pinned_);
      often += bytes[0] == value && bytes[kBytes - 1] == value;
      cudaDeviceSynchronize();
    }
    return often;
  }

  void Set(char value, cudaStream_t stream) { cudaMemsetAsync(memory_, value, kBytes, stream); }
  void CopyToHost(cudaStream_t stream) {
    cudaMemcpyAsync(pinned_, memory_, kBytes, cudaMemcpyDeviceToHost, stream);
  }

  void* memory_ = nullptr;
  void* pinned_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
};

TEST_F(StandInTest, WorkOfOneStreamIsOrdered) {
  EXPECT_EQ(HowOften(7,
                     [&] {
                       Set(7, stream_);
                       CopyToHost(stream_);
                       Set(8, stream_);
                       cudaStreamSynchronize(stream_);
                     }),
            kSeeds);
}

TEST_F(StandInTest, StreamsAreOrderedByEventsAlone) {
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  const auto work = [&](bool waits) {
    Set(7, stream_);
    cudaEventRecord(event, stream_);
    if (waits) cudaStreamWaitEvent(other_, event, 0);
    CopyToHost(other_);
    cudaStreamSynchronize(other_);
  };
  EXPECT_EQ(HowOften(7, [&] { work(true); }), kSeeds);
  EXPECT_THAT(HowOften(7, [&] { work(false); }), testing::AllOf(testing::Gt(0), testing::Lt(kSeeds)));
  cudaEventDestroy(event);
}

TEST_F(StandInTest, TheDefaultStreamIsOrderedWithBlockingStreamsAlone) {
  cudaStream_t blocking = nullptr;
  cudaStreamCreate(&blocking);
  const auto work = [&](cudaStream_t stream) {
    Set(7, stream);
    CopyToHost(nullptr);
    Set(8, stream);
    cudaDeviceSynchronize();
  };
  EXPECT_EQ(HowOften(7, [&] { work(blocking); }), kSeeds);
  EXPECT_LT(HowOften(7, [&] { work(stream_); }), kSeeds);
  cudaStreamDestroy(blocking);
}

TEST_F(StandInTest, WhoReadsBeforeTheCopyIsDoneMayReadAnything) {
  EXPECT_LT(HowOften(7,
                     [&] {
                       Set(7, stream_);
                       CopyToHost(stream_);
                     }),
            kSeeds);
}

TEST_F(StandInTest, ACopyToPageableMemoryHoldsUpTheCaller) {
  std::vector<char> pageable(kBytes);
  std::atomic<bool> released{false};
  cudaLaunchHostFunc(
      stream_,
      [](void* flag) {
        while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
      },
      &released);
  CopyToHost(stream_);  // returns
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    released = true;
  });
  cudaMemcpyAsync(pageable.data(), memory_, kBytes, cudaMemcpyDeviceToHost, stream_);
  EXPECT_TRUE(released);
  EXPECT_EQ(CudaStandIn().Counts().pageable_copies, 1);
  release.join();
}

TEST_F(StandInTest, NewMemoryIsPoisonedAndFreedMemoryIsGone) {
  float value = 0;
  cudaMemcpy(&value, memory_, sizeof(value), cudaMemcpyDeviceToHost);
  EXPECT_NE(value, value) << "NaN";
  void* freed = nullptr;
  cudaMalloc(&freed, kBytes);
  EXPECT_EQ(cudaFree(freed), cudaSuccess);
  EXPECT_EQ(cudaFree(freed), cudaErrorInvalidValue);
  cudaMemsetAsync(freed, 1, kBytes, stream_);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  // It stays.
  EXPECT_EQ(cudaMalloc(&freed, 1), cudaErrorIllegalAddress);
}

TEST_F(StandInTest, MemoryOfAStreamIsThereInItsOrder) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, kBytes, stream_), cudaSuccess);
  cudaMemsetAsync(memory, 1, kBytes, stream_);
  cudaFreeAsync(memory, stream_);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  cudaMemsetAsync(memory, 1, kBytes, other_);
  EXPECT_EQ(cudaStreamSynchronize(other_), cudaErrorIllegalAddress);
}

TEST_F(StandInTest, TheHostCannotTouchDeviceMemory) {
  EXPECT_DEATH(*static_cast<volatile char*>(memory_) = 1, "host touched device memory");
}

TEST_F(StandInTest, KernelsRunWithSharedMemoryBarriersAndShuffles) {
  std::vector<int> values(200);
  std::iota(values.begin(), values.end(), 0);
  cudaMemcpy(memory_, values.data(), 800, cudaMemcpyHostToDevice);
  ASSERT_EQ(Reverse(static_cast<int*>(memory_), 200, nullptr), cudaSuccess);
  cudaMemcpy(values.data(), memory_, 800, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(values[i], 199 - i);

  auto* const totals = static_cast<unsigned int*>(memory_) + 1000;
  cudaMemset(totals, 0, 12);
  ASSERT_EQ(SumWarps(static_cast<unsigned int*>(memory_), totals, 3, nullptr), cudaSuccess);
  cudaMemcpy(values.data(), totals, 12, cudaMemcpyDeviceToHost);
  EXPECT_THAT(std::vector<int>(values.begin(), values.begin() + 3), testing::ElementsAre(5872, 4848, 3824));
}

TEST_F(StandInTest, AKernelThatTouchesWhatItMustNotFails) {
  int on_host = 0;
  void* on_other_device = nullptr;
  cudaSetDevice(1);
  cudaMalloc(&on_other_device, 4);
  cudaSetDevice(0);
  for (void* address :
       {on_other_device, static_cast<void*>(static_cast<char*>(memory_) + (kBytes + 255) / 256 * 256),
        static_cast<void*>(nullptr)}) {
    CudaStandIn().Reset(1);
    EXPECT_EQ(Poke({static_cast<int*>(address)}, stream_), cudaSuccess) << "the launch itself";
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  }
  CudaStandIn().Reset(1);
  EXPECT_EQ(Reverse(&on_host, 1, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  CudaStandIn().Reset(1);
  cudaFree(on_other_device);
}

TEST_F(StandInTest, AKernelWhoseThreadsWaitForEachOtherFails) {
  EXPECT_EQ(Hang(stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchTimeout);
}

TEST_F(StandInTest, AGraphRunsWhatWasCapturedWheneverItIsLaunched) {
  int32_t* const box = static_cast<int32_t*>(memory_);
  cudaMemset(memory_, 0, kBytes);
  cudaDeviceSynchronize();
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(Reverse(box, 2, stream_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(CudaStandIn().Counts().kernels, 0);
  const int32_t values[] = {1, 2};
  cudaMemcpy(memory_, values, sizeof(values), cudaMemcpyHostToDevice);
  cudaDeviceSynchronize();
  for (const int first : {2, 1, 2}) {
    ASSERT_EQ(cudaGraphLaunch(executable, other_), cudaSuccess);
    CopyToHost(other_);
    ASSERT_EQ(cudaStreamSynchronize(other_), cudaSuccess);
    EXPECT_EQ(*static_cast<int32_t*>(pinned_), first);
  }
  EXPECT_EQ(CudaStandIn().Counts().kernels, 3);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, other_), cudaErrorInvalidValue);
}

TEST_F(StandInTest, AStreamThatIsCapturedTakesLaunchesAlone) {
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(StandInTest, ACopyBetweenDevicesIsOfTheDevicesItNames) {
  void* there = nullptr;
  cudaSetDevice(1);
  ASSERT_EQ(cudaMalloc(&there, kBytes), cudaSuccess);
  cudaSetDevice(0);
  Set(7, stream_);
  EXPECT_EQ(cudaMemcpyPeerAsync(there, 0, memory_, 1, kBytes, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeerAsync(there, 1, memory_, 0, kBytes, stream_), cudaSuccess);
  Set(8, stream_);
  EXPECT_EQ(cudaMemcpyPeerAsync(memory_, 0, there, 1, kBytes, stream_), cudaSuccess);
  CopyToHost(stream_);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(static_cast<char*>(pinned_)[kBytes - 1], 7);
  cudaFree(there);
}

TEST_F(StandInTest, StreamsAndEventsAreOfTheirDevice) {
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  cudaSetDevice(1);
  EXPECT_EQ(Reverse(static_cast<int*>(memory_), 1, stream_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory_, 0, 1, stream_), cudaSuccess) << "of copies, the stream decides";
  cudaSetDevice(0);
  cudaEventDestroy(event);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
}

TEST_F(StandInTest, EventsTellTheirDistanceWhenTheyHaveCome) {
  cudaEvent_t start = nullptr, end = nullptr, without_timing = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  cudaEventCreateWithFlags(&without_timing, cudaEventDisableTiming);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventQuery(start), cudaSuccess) << "never recorded";
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  std::atomic<bool> released{false};
  cudaEventRecord(start, stream_);
  cudaLaunchHostFunc(
      stream_,
      [](void* flag) {
        while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
      },
      &released);
  cudaEventRecord(end, stream_);
  cudaEventRecord(without_timing, stream_);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
  released = true;
  EXPECT_EQ(cudaEventSynchronize(without_timing), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, without_timing), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  for (const cudaEvent_t event : {start, end, without_timing}) cudaEventDestroy(event);
}

TEST_F(StandInTest, ErrorsComeAsAskedFor) {
  void* memory = nullptr;
  CudaStandIn().Fail("cudaMalloc", 2, cudaErrorMemoryAllocation, false);
  EXPECT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
  cudaFree(memory);
  EXPECT_EQ(cudaMalloc(&memory, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&memory, 1), cudaSuccess);
  cudaFree(memory);
  EXPECT_EQ(cudaMalloc(&memory, size_t{1} << 40), cudaErrorMemoryAllocation);
  CudaStandIn().Fail("*", 2, cudaErrorLaunchFailure, false);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorLaunchFailure);
  CudaStandIn().Fail("execution", 1, cudaErrorECCUncorrectable, false);
  Set(1, stream_);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorECCUncorrectable) << "what a stream met stays";
  cudaSetDevice(1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "on its device";
  cudaSetDevice(0);
}

TEST_F(StandInTest, AHostFunctionMayNotCallCuda) {
  std::atomic<int> error{-1};
  cudaLaunchHostFunc(
      stream_, [](void* result) { *static_cast<std::atomic<int>*>(result) = cudaDeviceSynchronize(); },
      &error);
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(error, cudaErrorNotPermitted);
}

TEST_F(StandInTest, TheChildOfAForkMayNotCallCuda) {
  const pid_t child = fork();
  if (child == 0) {
    int device = 0;
    cudaGetDevice(&device);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(StandInTest, CountsWhatIsNotReleased) {
  const OttCudaCounts counts = CudaStandIn().Counts();
  EXPECT_EQ(counts.device_blocks, 1);
  EXPECT_EQ(counts.device_bytes, static_cast<int64_t>(kBytes));
  EXPECT_EQ(counts.pinned_blocks, 1);
  EXPECT_EQ(counts.streams, 2);
  EXPECT_EQ(counts.events, 0);
}

TEST_F(StandInTest, WritingBehindABlockIsNoticedWhenItIsFreed) {
  const auto overrun = [&] {
    void* memory = nullptr;
    cudaMalloc(&memory, 4);
    Poke({static_cast<int*>(memory) + 1}, stream_);
    cudaStreamSynchronize(stream_);
    cudaFree(memory);
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(overrun(), "behind the end of a block");
}

}  // namespace
}  // namespace ott
