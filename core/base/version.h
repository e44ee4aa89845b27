// The version of optim_test_tools; MODULE.bazel has the same.

#ifndef OTT_CORE_BASE_VERSION_H_
#define OTT_CORE_BASE_VERSION_H_

namespace ott {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace ott

#endif  // OTT_CORE_BASE_VERSION_H_
