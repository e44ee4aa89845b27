// What a timer costs, by the machine code that nvcc makes: nothing while it is off, and a few instructions a
// lap.

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "ott/core/base/file.h"

namespace ott {
namespace {

// Every instruction of sm_70 and later.
constexpr size_t kBytesPerInstruction = 16;

class KernelTimerMachineCodeTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const absl::StatusOr<std::string> file = ReadFile(
        std::string("core/profile/_objs/kernel_timer_kernels_for_test/kernel_timer_kernels_for_test.cu.") +
        GetParam() + ".cubin");
    ASSERT_TRUE(file.ok()) << file.status();
    cubin_ = *file;
  }

  template <typename T>
  T Read(size_t offset) const {
    T value;
    std::memcpy(&value, cubin_.data() + offset, sizeof(value));
    return value;
  }

  // Contents of a section of the ELF file; empty if there is none.
  std::string Section(const std::string& name) const {
    const auto header = Read<Elf64_Ehdr>(0);
    const auto section = [&](size_t i) { return Read<Elf64_Shdr>(header.e_shoff + i * header.e_shentsize); };
    const size_t names = section(header.e_shstrndx).sh_offset;
    for (size_t i = 0; i < header.e_shnum; ++i) {
      if (cubin_.c_str() + names + section(i).sh_name == name) {
        return cubin_.substr(section(i).sh_offset, section(i).sh_size);
      }
    }
    return "";
  }

  std::string Code(const std::string& kernel) const { return Section(".text." + kernel); }

  // Of stores to global memory.
  static int NumStores(const std::string& code) {
    constexpr uint16_t kOpcodeMask = 0xfff;
    constexpr uint16_t kStoreGlobal = 0x986;
    int count = 0;
    for (size_t i = 0; i < code.size(); i += kBytesPerInstruction) {
      uint16_t first;
      std::memcpy(&first, code.data() + i, sizeof(first));
      count += (first & kOpcodeMask) == kStoreGlobal;
    }
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
  // As its source says, so stores are counted right.
  EXPECT_EQ(NumStores(Code("PlainKernel")), 1);
}

INSTANTIATE_TEST_SUITE_P(Architectures, KernelTimerMachineCodeTest, ::testing::Values("sm_80", "sm_90"));

}  // namespace
}  // namespace ott
