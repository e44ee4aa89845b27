// Whatever a kernel is called, its short name is one word that is not empty.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "ott/core/op_cost/kernel_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  const std::string brief = ott::BriefKernelName(name);
  if (brief.empty() || brief.find_first_of(" \t\r\n") != std::string::npos) std::abort();
  ott::TensorCoreUseOf(name);
  ott::KernelKindOf(name);
  ott::KernelDType(name);
  ott::KernelResultDType(name);
  ott::KernelIsCausal(name);
  return 0;
}
