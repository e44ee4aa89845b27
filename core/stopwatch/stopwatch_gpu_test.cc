// The stopwatch with a device's time.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

using DeviceSync = Stopwatch::DeviceSync;

// Work of a device that ends when it is let go, or after so many milliseconds.
struct Work {
  explicit Work(int most_milliseconds) : milliseconds(most_milliseconds) {}

  void GiveTo(cudaStream_t stream) { ASSERT_EQ(cudaLaunchHostFunc(stream, Run, this), cudaSuccess); }
  static void Run(void* data) {
    Work& work = *static_cast<Work*>(data);
    for (int i = 0; i < work.milliseconds && !work.is_let_go; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    work.is_done = true;
  }

  const int milliseconds;
  std::atomic<bool> is_let_go{false};
  std::atomic<bool> is_done{false};
};

class StopwatchOnDevice : public testing::Test {
 protected:
  StopwatchOnDevice() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  ~StopwatchOnDevice() override {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  void Enable(DeviceSync timing, int64_t num_warmup_iters = 0) {
    Stopwatch::Options options;
    options.num_warmup_iters = num_warmup_iters;
    options.device_sync = timing;
    options.stream = stream_;
    ASSERT_EQ(stopwatch_.Enable(options), absl::OkStatus());
  }

  void MeasureStep() {
    stopwatch_.Start("step");
    stopwatch_.End("step");
  }

  Statistics OnDevice() const {
    StopwatchStats stats;
    stopwatch_.Stats(&stats);
    return stats.measurements_size() == 0 ? Statistics() : stats.measurements(0).device_per_interval();
  }

  cudaStream_t stream_ = nullptr;
  Stopwatch stopwatch_{Stopwatch::Environment{Clock::Steady()}};
};

TEST_F(StopwatchOnDevice, BothEndsOfAMeasurementWaitForTheDevice) {
  for (const DeviceSync timing : {DeviceSync::kDevice, DeviceSync::kStream}) {
    for (int seed = 0; seed < 20; ++seed) {
      if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
      Enable(timing);
      Work before(2);
      Work within(2);
      before.GiveTo(stream_);
      stopwatch_.Start("step");
      EXPECT_TRUE(before.is_done);
      within.GiveTo(stream_);
      stopwatch_.End("step");
      EXPECT_TRUE(within.is_done);
      stopwatch_.FinishIter();
      EXPECT_GE(stopwatch_.MeanSecondsPerInterval("step").value(), 0.002);
      stopwatch_.Disable();
    }
  }
}

TEST_F(StopwatchOnDevice, OfOneStreamDoesNotWaitForOthers) {
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  Enable(DeviceSync::kStream);
  Work elsewhere(60000);
  elsewhere.GiveTo(other);
  MeasureStep();
  EXPECT_FALSE(elsewhere.is_done);
  elsewhere.is_let_go = true;
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(StopwatchOnDevice, EventsTellTheDevicesTimeAndNobodyWaits) {
  Enable(DeviceSync::kEvents, 1);
  { const Stopwatch::Scope warmup(stopwatch_, "step"); }
  stopwatch_.FinishIter();
  Work work(60000);
  stopwatch_.Start("step");
  // The stream has passed the start.
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  work.GiveTo(stream_);
  stopwatch_.End("step");
  stopwatch_.FinishIter();
  EXPECT_FALSE(work.is_done);
  EXPECT_EQ(OnDevice().count(), 0);
  EXPECT_EQ(stopwatch_.Snapshot().num_pending_device_intervals, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  work.is_let_go = true;
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(OnDevice().count(), 1);
  EXPECT_EQ(stopwatch_.Snapshot().num_pending_device_intervals, 0);
  EXPECT_GE(OnDevice().total(), 0.020);
  EXPECT_LT(OnDevice().total(), 60);
}

TEST_F(StopwatchOnDevice, ThreadsThatUseOtherDevicesMeasureThisOne) {
  int num_devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&num_devices), cudaSuccess);
  Enable(DeviceSync::kEvents);
  std::thread([&] {
    ASSERT_EQ(cudaSetDevice(num_devices - 1), cudaSuccess);
    MeasureStep();
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, num_devices - 1);
  }).join();
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  stopwatch_.FinishIter();
  EXPECT_EQ(OnDevice().count(), 1);
}

TEST_F(StopwatchOnDevice, AfterAnErrorOfTheDeviceTheHostsTimeGoesOn) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "errors of a GPU cannot be had at will";
  for (const DeviceSync timing : {DeviceSync::kDevice, DeviceSync::kStream, DeviceSync::kEvents}) {
    CudaStandIn().Reset(1);
    Enable(timing);
    CudaStandIn().Fail("cudaGetDevice", 1, cudaErrorLaunchFailure, true);
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaErrorLaunchFailure);
    for (int i = 0; i < 3; ++i) {
      MeasureStep();
      stopwatch_.FinishIter();
    }
    EXPECT_EQ(stopwatch_.num_measured_iters(), 3);
    EXPECT_EQ(OnDevice().count(), 0);
    stopwatch_.Disable();
  }
  CudaStandIn().Reset(1);
}

TEST_F(StopwatchOnDevice, EventsAreGivenBackWhateverHappened) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "the events of a GPU cannot be counted";
  const auto measure = [&](int64_t failing_call) {
    CudaStandIn().Reset(failing_call);
    Stopwatch stopwatch{Stopwatch::Environment{Clock::Steady()}};
    Stopwatch::Options options;
    options.device_sync = DeviceSync::kEvents;
    options.stream = stream_;
    CudaStandIn().Fail("*", failing_call, cudaErrorLaunchFailure, false);
    if (!stopwatch.Enable(options).ok()) return;
    for (int i = 0; i < 3; ++i) {
      stopwatch.Start("step");
      stopwatch.Start("part");
      stopwatch.End("part");
      stopwatch.End("step");
      stopwatch.FinishIter();
    }
    // Some are still pending.
    stopwatch.Disable();
  };
  for (int64_t call = 1; call < 60; ++call) {
    measure(call);
    EXPECT_EQ(CudaStandIn().Counts().events, 0) << call;
  }
}

TEST_F(StopwatchOnDevice, TheChildOfAForkLeavesCudaAlone) {
  for (const DeviceSync timing : {DeviceSync::kDevice, DeviceSync::kStream, DeviceSync::kEvents}) {
    Enable(timing);
    stopwatch_.Start("step");
    const pid_t child = fork();
    if (child == 0) {
      stopwatch_.End("step");
      stopwatch_.FinishIter();
      MeasureStep();
      stopwatch_.FinishIter();
      const bool is_good = stopwatch_.num_measured_iters() == 2;
      stopwatch_.Disable();
      _exit(is_good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    stopwatch_.End("step");
    stopwatch_.Disable();
  }
}

}  // namespace
}  // namespace ott
