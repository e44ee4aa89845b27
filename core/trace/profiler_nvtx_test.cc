// Tests what captures see of a profiler; NVTX_INJECTION64_PATH names the library that listens.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/nvtx/nvtx_injection_for_test.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/trace/profiler.h"

namespace ott {
namespace {

using ::testing::ElementsAre;

TEST(ProfilerNvtx, CapturesSeeWhereWindowsBeginAndEndAndNoRangesOfAWrapperThatIsOff) {
  Profiler::Options options;
  options.schedule.wait = 1;
  options.schedule.warmup = 1;
  ASSERT_TRUE(Profiler::Get().Enable(options).ok());
  for (int step = 0; step < 6; ++step) {
    { OTT_NVTX_SCOPE("range"); }
    ASSERT_TRUE(Profiler::Get().Step().ok());
  }
  EXPECT_THAT(Received(), ElementsAre("create domain ott.profiler", "mark start in ott.profiler",
                                      "mark stop in ott.profiler", "mark start in ott.profiler",
                                      "mark stop in ott.profiler"));
}

}  // namespace
}  // namespace ott
