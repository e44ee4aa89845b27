#ifndef OTT_CORE_BASE_DEVICE_OR_REASON_FOR_TEST_H_
#define OTT_CORE_BASE_DEVICE_OR_REASON_FOR_TEST_H_

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {

// A test runs on machines with a GPU and without one. `status`: of a call that needs it.
inline void ExpectDoneOrTheReasonWhyNot(const absl::Status& status) {
  if (status.ok()) return;
  EXPECT_TRUE(absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::AnyOf(::testing::HasSubstr("built without the CUDA runtime"),
                               ::testing::HasSubstr("cudaErrorInsufficientDriver"),
                               ::testing::HasSubstr("cudaErrorNoDevice")));
}

}  // namespace ott

#endif  // OTT_CORE_BASE_DEVICE_OR_REASON_FOR_TEST_H_
