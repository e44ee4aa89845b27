// Names of kernels as the file wants them.

#ifndef OTT_TOOLS_CAPTURE_KERNEL_NAME_H_
#define OTT_TOOLS_CAPTURE_KERNEL_NAME_H_

#include <string>
#include <string_view>

namespace ott {

// The C++ name; the name itself if it is not mangled.
std::string DemangledKernelName(const std::string& mangled);

// Without return type, namespaces, template arguments and parameters.
std::string_view ShortKernelName(std::string_view demangled);

}  // namespace ott

#endif  // OTT_TOOLS_CAPTURE_KERNEL_NAME_H_
