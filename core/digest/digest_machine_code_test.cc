// Tests what a digest costs on a device, by the machine code that nvcc makes.

#include <cstdint>
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/third_party/cuda/testing/machine_code.h"

namespace ott {
namespace {

constexpr int kStripesAtOnce = 8;
constexpr int kBytesOfStripe = 256;

class DigestMachineCode : public ::testing::TestWithParam<int> {};

// Returns the instruction to which a branch leads.
int64_t Target(uint64_t branch, size_t at, int architecture) {
  const auto high = static_cast<int32_t>(branch >> 32);
  // In bytes; from sm_90 on in fours, with eight bits elsewhere.
  const int64_t offset =
      architecture < 90 ? high : ((int64_t{high} >> 2) * 256 + static_cast<int64_t>(branch >> 16 & 0xff)) * 4;
  return static_cast<int64_t>(at) + 1 + offset / static_cast<int64_t>(kBytesPerInstruction);
}

TEST_P(DigestMachineCode, ALoopOverEightStripesIsFifteenInstructionsAStripe) {
  const absl::StatusOr<std::string> cubin = ReadFile("core/digest/_objs/digest_kernel/digest_kernel.cu.sm_" +
                                                     std::to_string(GetParam()) + ".cubin");
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  const std::string code = CodeOfKernel(*cubin, "12DigestKernelILb1EE");
  int num_loops = 0;
  for (size_t i = 0; i < NumInstructions(code); ++i) {
    const uint64_t instruction = Instruction(code, i);
    if (!Is(Opcode::kBranch, instruction)) continue;
    const int64_t begin = Target(instruction, i, GetParam());
    if (begin < 0 || begin > static_cast<int64_t>(i)) continue;
    int num_loads = 0;
    for (size_t j = begin; j < i; ++j) num_loads += Is(Opcode::kLoadGlobal, Instruction(code, j));
    if (num_loads != kStripesAtOnce) continue;
    ++num_loops;
    const auto length = static_cast<int>(i + 1 - begin);
    std::printf("sm_%d: %d instructions of a warp for %d bytes: %.3f a byte\n", GetParam(), length,
                kStripesAtOnce * kBytesOfStripe,
                static_cast<double>(length) / (kStripesAtOnce * kBytesOfStripe));
    EXPECT_LE(length, 15 * kStripesAtOnce);
  }
  EXPECT_EQ(num_loops, 1);
}

INSTANTIATE_TEST_SUITE_P(Architectures, DigestMachineCode, ::testing::Values(80, 90));

}  // namespace
}  // namespace ott
