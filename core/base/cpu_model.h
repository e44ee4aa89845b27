// The name of this machine's processor.

#ifndef OTT_CORE_BASE_CPU_MODEL_H_
#define OTT_CORE_BASE_CPU_MODEL_H_

#include <string>

namespace ott {

// The "model name" of /proc/cpuinfo; empty where there is none.
std::string CpuModel();

}  // namespace ott

#endif  // OTT_CORE_BASE_CPU_MODEL_H_
