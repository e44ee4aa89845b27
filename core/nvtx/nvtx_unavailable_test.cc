// In a build without NVTX.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"

namespace ott {
namespace {

TEST(NvtxUnavailable, EnablingSaysWhatIsMissingAndCallsAreIgnored) {
  NvtxRangeWrapper& wrapper = NvtxRangeWrapper::Get();
  const absl::Status status = wrapper.Enable({});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("built without the NVTX 3 headers"));
  OTT_NVTX_SCOPE("ignored");
  EXPECT_FALSE(wrapper.enabled());
}

}  // namespace
}  // namespace ott
