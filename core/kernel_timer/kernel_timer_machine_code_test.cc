// Tests what a timer costs, by the machine code that nvcc makes: nothing while it is off, and a few
// instructions a lap.

#include <string>

#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/third_party/cuda/testing/machine_code.h"

namespace ott {
namespace {

class KernelTimerMachineCodeTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const absl::StatusOr<std::string> file = ReadFile(
        std::string(
            "core/kernel_timer/_objs/kernel_timer_kernels_for_test/kernel_timer_kernels_for_test.cu.") +
        GetParam() + ".cubin");
    ASSERT_TRUE(file.ok()) << file.status();
    cubin_ = *file;
  }

  std::string Code(const std::string& kernel) const { return CodeOfKernel(cubin_, kernel); }

  // Counts stores to global memory.
  static int NumStores(const std::string& code) {
    int count = 0;
    for (size_t i = 0; i < NumInstructions(code); ++i)
      count += Is(Opcode::kStoreGlobal, Instruction(code, i));
    return count;
  }

 private:
  std::string cubin_;
};

TEST_P(KernelTimerMachineCodeTest, ATimerThatIsOffLeavesNoInstruction) {
  EXPECT_FALSE(Code("PlainKernel").empty());
  EXPECT_EQ(Code("UntimedKernel"), Code("PlainKernel"));
  EXPECT_NE(Code("TimedKernel"), Code("PlainKernel"));
}

TEST_P(KernelTimerMachineCodeTest, ALapIsAFewInstructionsAndOneStore) {
  const std::string one = Code("OneLapKernel");
  const std::string seventeen = Code("SeventeenLapsKernel");
  ASSERT_GT(one.size(), 0);
  ASSERT_GT(seventeen.size(), one.size());
  // Code is padded to 128 bytes, which is half an instruction a lap.
  EXPECT_LE((seventeen.size() - one.size()) / kBytesPerInstruction / 16.0, 6);
  EXPECT_EQ(NumStores(seventeen) - NumStores(one), 16);
  // Stores are counted right: the source has one.
  EXPECT_EQ(NumStores(Code("PlainKernel")), 1);
}

INSTANTIATE_TEST_SUITE_P(Architectures, KernelTimerMachineCodeTest, ::testing::Values("sm_80", "sm_90"));

}  // namespace
}  // namespace ott
