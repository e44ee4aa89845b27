#include "ott/core/base/device_sync.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

// The same binary meets machines with and without a GPU.
void ExpectDoneOrTheReasonWhyNot(const absl::Status& status) {
  if (status.ok()) return;
  EXPECT_TRUE(absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::AnyOf(::testing::HasSubstr("built without the CUDA runtime"),
                               ::testing::HasSubstr("cudaErrorInsufficientDriver"),
                               ::testing::HasSubstr("cudaErrorNoDevice")));
}

TEST(DeviceSync, WaitsOrNamesWhatIsMissing) {
  ExpectDoneOrTheReasonWhyNot(SynchronizeDevice());
  ExpectDoneOrTheReasonWhyNot(SynchronizeStream(nullptr));
}

}  // namespace
}  // namespace ott
