// The machine code of a kernel, in a cubin that nvcc made.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_MACHINE_CODE_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_MACHINE_CODE_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace ott {

// Every instruction of sm_70 and later.
inline constexpr size_t kBytesPerInstruction = 16;

// Its low 12 bits.
enum class Opcode : uint16_t { kBranch = 0x947, kLoadGlobal = 0x981, kStoreGlobal = 0x986 };

// Returns the code of the first kernel whose mangled name has `part` in it; empty if there is none.
inline std::string CodeOfKernel(const std::string& cubin, const std::string& part) {
  const auto read = [&](auto value, size_t offset) {
    std::memcpy(&value, cubin.data() + offset, sizeof(value));
    return value;
  };
  const auto header = read(Elf64_Ehdr(), 0);
  const auto section = [&](size_t i) { return read(Elf64_Shdr(), header.e_shoff + i * header.e_shentsize); };
  const size_t names = section(header.e_shstrndx).sh_offset;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const std::string name = cubin.c_str() + names + section(i).sh_name;
    if (name.rfind(".text.", 0) == 0 && name.find(part) != std::string::npos) {
      return cubin.substr(section(i).sh_offset, section(i).sh_size);
    }
  }
  return "";
}

inline size_t NumInstructions(const std::string& code) { return code.size() / kBytesPerInstruction; }

// Returns the low half of an instruction.
inline uint64_t Instruction(const std::string& code, size_t i) {
  uint64_t low;
  std::memcpy(&low, code.data() + i * kBytesPerInstruction, sizeof(low));
  return low;
}

inline bool Is(Opcode opcode, uint64_t instruction) {
  return (instruction & 0xfff) == static_cast<uint64_t>(opcode);
}

}  // namespace ott

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_MACHINE_CODE_H_
