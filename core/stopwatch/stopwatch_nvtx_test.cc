// The NVTX ranges of measurements, as a profiler receives them.

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/nvtx/nvtx_injection_for_test.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

int num_synchronized = 0;

Stopwatch::Environment RealClock() {
  Stopwatch::Environment environment{Clock::Fastest()};
  environment.synchronize_device = [] {
    ++num_synchronized;
    return absl::OkStatus();
  };
  return environment;
}

TEST(StopwatchNvtx, ScopesNestAndStartedMeasurementsAreRangesOfTheProcess) {
  Stopwatch stopwatch(RealClock());
  Stopwatch::Options options;
  options.emit_nvtx = true;
  options.num_warmup_iters = 1;
  ASSERT_TRUE(stopwatch.Enable(options).ok());
  Take();
  {
    const Stopwatch::Scope outer(stopwatch, "outer");
    const Stopwatch::Scope inner(stopwatch, "inner");
  }
  EXPECT_THAT(Received(), ElementsAre("push outer", "push inner", "pop", "pop"));
  stopwatch.Start("first");
  stopwatch.Start("second");
  std::thread([&stopwatch] { stopwatch.End("first"); }).join();
  stopwatch.End("second");
  EXPECT_THAT(Received(), ElementsAre("start first 1", "start second 2", "end 1", "end 2"));
  EXPECT_EQ(num_synchronized, 0);
  // Nothing is sent unless it is asked for.
  Stopwatch silent(RealClock());
  Stopwatch::Options collective;
  collective.collective_measurements = {"*"};
  ASSERT_TRUE(silent.Enable(collective).ok());
  Take();
  { const Stopwatch::Scope scope(silent, "silent"); }
  silent.Start("silent too");
  silent.End("silent too");
  EXPECT_THAT(Received(), IsEmpty());
}

}  // namespace
}  // namespace ott
