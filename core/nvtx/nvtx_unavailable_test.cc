// In a build without NVTX.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/clock.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/nvtx/op_range.h"

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

TEST(NvtxUnavailable, OpRangesSayWhatIsMissingAndStillReachAProfilersWindow) {
  OpRanges ranges;
  const absl::Status status = ranges.Enable({});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("built without the NVTX 3 headers"));
  EventRecorder recorder(Clock::Steady());
  recorder.Open();
  ranges.RecordInto(&recorder);
  { OpRange op(OpRange::Op("relu").In(ranges)); }
  ranges.RecordInto(nullptr);
  recorder.Close();
  ASSERT_EQ(recorder.Buffers().size(), 1);
  EXPECT_THAT(std::string(recorder.Buffers()[0].records), ::testing::HasSubstr("relu, seq = 0"));
}

}  // namespace
}  // namespace ott
