#include "tools/capture/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace ott {

std::string DemangledKernelName(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? demangled.get() : mangled;
}

std::string_view ShortKernelName(std::string_view demangled) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  size_t begin = 0, end = 0;  // of the part of the name that was seen last
  int depth = 0;              // of brackets
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (depth == 0 && demangled.substr(i, kAnonymous.size()) == kAnonymous) {
      i += kAnonymous.size() - 1;
    } else if (depth == 0 && c == '(') {
      break;
    } else if (c == '<' || c == '(') {
      ++depth;
    } else if (c == '>' || c == ')') {
      depth -= depth > 0;
    } else if (depth == 0 && (c == ':' || c == ' ')) {
      begin = end = i + 1;
    } else if (depth == 0) {
      end = i + 1;
    }
  }
  return end > begin ? demangled.substr(begin, end - begin) : demangled;
}

}  // namespace ott
