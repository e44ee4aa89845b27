// Checks what CUDA code does when CUDA fails.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_LEAK_CHECK_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_LEAK_CHECK_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {

// Has work() meet the first, the second, ... error of a call, and of what a stream runs, until there was
// none. It returns an absl::Status, and checks what it got where that is OK: an error that took nothing from
// the result need not be told. Nothing may stay allocated but what is made once.
template <typename Work>
void ExpectErrorsAreToldAndNothingLeaks(Work work) {
  const OttCuda& device = CudaStandIn();
  ASSERT_TRUE(work().ok());
  for (const char* function : {"*", "execution"}) {
    int64_t nth = 0;
    int num_told = 0;
    for (bool has_failed = true; has_failed;) {
      device.Reset(++nth);
      const OttCudaCounts before = device.Counts();
      device.Fail(function, nth, /*cudaErrorLaunchFailure*/ 719, false);
      num_told += !work().ok();
      has_failed = device.Counts().failures > 0;
      device.Reset(nth);
      const OttCudaCounts after = device.Counts();
      EXPECT_EQ(after.device_blocks, before.device_blocks) << function << " #" << nth;
      EXPECT_EQ(after.pinned_blocks, before.pinned_blocks) << function << " #" << nth;
      EXPECT_EQ(after.events, before.events) << function << " #" << nth;
      EXPECT_EQ(after.streams, before.streams) << function << " #" << nth;
    }
    EXPECT_GT(num_told, 0) << function;
  }
}

}  // namespace ott

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_LEAK_CHECK_H_
