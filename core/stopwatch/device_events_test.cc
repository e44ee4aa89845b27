#include "ott/core/stopwatch/device_events.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

// The same binary meets machines with and without a GPU; stopwatch_gpu_test.cc measures with events.
TEST(DeviceEvents, AreThereOrNameWhatIsMissing) {
  const absl::Status status = CreateDeviceEvents(nullptr).status();
  if (status.ok()) return;
  EXPECT_TRUE(absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::AnyOf(::testing::HasSubstr("built without the CUDA runtime"),
                               ::testing::HasSubstr("cudaErrorInsufficientDriver"),
                               ::testing::HasSubstr("cudaErrorNoDevice")));
}

}  // namespace
}  // namespace ott
