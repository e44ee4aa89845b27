#include "ott/core/stopwatch/device_events.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

// The same binary meets machines with and without a GPU.
TEST(DeviceEvents, TellTheirDistanceOrWhatIsMissing) {
  const absl::StatusOr<std::unique_ptr<DeviceEvents>> events = CreateDeviceEvents(nullptr);
  if (!events.ok()) {
    EXPECT_TRUE(absl::IsUnimplemented(events.status()) || absl::IsFailedPrecondition(events.status()))
        << events.status();
    EXPECT_THAT(std::string(events.status().message()),
                ::testing::AnyOf(::testing::HasSubstr("built without the CUDA runtime"),
                                 ::testing::HasSubstr("cudaErrorInsufficientDriver"),
                                 ::testing::HasSubstr("cudaErrorNoDevice")));
    return;
  }
  const DeviceEvents::Event start = (*events)->Record();
  const DeviceEvents::Event end = (*events)->Record();
  ASSERT_NE(start, nullptr);
  ASSERT_NE(end, nullptr);
  while (!(*events)->HasHappened(end)) {
  }
  EXPECT_TRUE((*events)->HasHappened(start));
  const std::optional<uint64_t> between = (*events)->Between(start, end);
  ASSERT_TRUE(between.has_value());
  EXPECT_LT(*between, 1'000'000'000'000);
  (*events)->GiveBack(start);
  (*events)->GiveBack(end);
  EXPECT_NE((*events)->Record(), nullptr);
}

}  // namespace
}  // namespace ott
