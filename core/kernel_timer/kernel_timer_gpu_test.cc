// A kernel whose sections do known amounts of equal work.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/kernel_timer/kernel_timer_buffer.h"
#include "ott/core/kernel_timer/kernel_timer_kernels_for_test.h"
#include "ott/core/kernel_timer/kernel_timer_report.h"

namespace ott {
namespace {

constexpr int kBlocks = 200;
constexpr WorkSteps kSteps = {20000, 10000, 5, 30000};

class KernelTimerGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&x_), kBlocks * sizeof(float)), cudaSuccess);
  }
  void TearDown() override { cudaFree(x_); }

  KernelTimes Run(const KernelTimerBuffer::Options& options, int threads, const WorkSteps& steps = kSteps) {
    absl::StatusOr<std::unique_ptr<KernelTimerBuffer>> buffer = KernelTimerBuffer::Create(options);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    if (!buffer.ok()) return {};
    EXPECT_EQ(LaunchTimedKernel(kBlocks, threads, x_, steps, (*buffer)->view()), cudaSuccess);
    absl::StatusOr<KernelTimes> times = (*buffer)->Collect();
    EXPECT_TRUE(times.ok()) << times.status();
    return times.ok() ? *times : KernelTimes();
  }

  float* x_ = nullptr;
};

// The largest error of a section's time, relative to what its work would take.
double LargestError(const KernelTimerStats& stats) {
  double error = 0;
  const auto expect = [&error](double actual, double expected) {
    error = std::max(error, std::abs(actual / expected - 1));
  };
  expect(stats.sections(0).share(), 0.2);
  expect(stats.sections(1).share(), 0.5);
  expect(stats.sections(2).share(), 0.3);
  for (const double iteration : stats.sections(1).per_iteration()) {
    expect(iteration / stats.sections(0).mean(), 0.5);
  }
  return error;
}

TEST_F(KernelTimerGpuTest, SharesAreThoseOfTheWork) {
  // A section takes longer if a stand-in's CPU is taken from it meanwhile: one launch of many is left alone.
  double error = 1;
  for (int launch = 0; launch < 60 && error > 0.1; ++launch) {
    KernelTimerReport report("work", {"load", "search", "store"});
    report.Add(Run({}, 1));
    const KernelTimerStats stats = report.Stats();
    ASSERT_GE(stats.sections_size(), 3);
    EXPECT_EQ(stats.units(), kBlocks);
    EXPECT_EQ(stats.laps_lost() + stats.units_lost() + stats.units_unfinished() + stats.invalid(), 0);
    ASSERT_EQ(stats.sections(1).per_iteration_size(), 5);
    EXPECT_GT(stats.cycles_per_nanosecond(), 0.1);
    EXPECT_LT(stats.cycles_per_nanosecond(), 5);
    error = std::min(error, LargestError(stats));
  }
  EXPECT_LE(error, 0.1);
}

TEST_F(KernelTimerGpuTest, WarpsAndSampledBlocksAreTimedWhereAskedFor) {
  KernelTimerBuffer::Options options;
  options.every_n_blocks = 10;
  options.per_warp = true;
  const KernelTimes times = Run(options, 96, {10, 10, 5, 10});
  ASSERT_EQ(times.units.size(), kBlocks / 10 * 3);
  for (size_t i = 0; i < times.units.size(); ++i) {
    EXPECT_EQ(times.units[i].block, i / 3 * 10);
    EXPECT_EQ(times.units[i].warp, i % 3);
    EXPECT_EQ(times.units[i].laps.size(), 7);
  }
}

TEST_F(KernelTimerGpuTest, EventsLieWithinTheLaunchOnTheHostsClock) {
  const absl::StatusOr<GlobalTimerOffset> offset = MeasureGlobalTimer();
  ASSERT_TRUE(offset.ok()) << offset.status();
  timespec before, after;
  clock_gettime(CLOCK_REALTIME, &before);
  const KernelTimes times = Run({}, 1);
  clock_gettime(CLOCK_REALTIME, &after);
  const auto nanoseconds = [](const timespec& t) { return t.tv_sec * int64_t{1000000000} + t.tv_nsec; };
  // Clocks drift apart by no more than this within a test.
  const int64_t error = offset->error_nanoseconds + 100000;
  const std::vector<KernelSectionEvent> events = KernelSectionEvents(times);
  EXPECT_EQ(events.size(), kBlocks * 7);
  for (const KernelSectionEvent& event : events) {
    EXPECT_GE(event.start_nanoseconds + offset->unix_nanoseconds, nanoseconds(before) - error);
    EXPECT_LE(event.end_nanoseconds + offset->unix_nanoseconds, nanoseconds(after) + error);
  }
}

}  // namespace
}  // namespace ott
