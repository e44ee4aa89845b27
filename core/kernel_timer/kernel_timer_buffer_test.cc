// Without a device: what can be refused before, and CUDA's own words.

#include "ott/core/kernel_timer/kernel_timer_buffer.h"

#include "gtest/gtest.h"
#include "ott/core/base/device_sync.h"

namespace ott {
namespace {

TEST(KernelTimerBuffer, AgreesWithTheRuntimeOnTheDevice) {
  EXPECT_EQ(KernelTimerBuffer::Create({}).status().code(), SynchronizeDevice().code());
  EXPECT_EQ(MeasureGlobalTimer().status().code(), SynchronizeDevice().code());
}

TEST(KernelTimerBuffer, NoUnitsAndEveryNoBlocksAreRefused) {
  const absl::StatusCode refused = absl::IsUnimplemented(SynchronizeDevice())
                                       ? absl::StatusCode::kUnimplemented
                                       : absl::StatusCode::kInvalidArgument;
  KernelTimerBuffer::Options no_units, no_blocks;
  no_units.num_units = 0;
  no_blocks.every_n_blocks = 0;
  for (const auto& options : {no_units, no_blocks})
    EXPECT_EQ(KernelTimerBuffer::Create(options).status().code(), refused);
}

}  // namespace
}  // namespace ott
