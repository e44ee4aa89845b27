// What the injection library for tests saw, in the order in which it came.

#ifndef OTT_CORE_NVTX_NVTX_INJECTION_FOR_TEST_H_
#define OTT_CORE_NVTX_NVTX_INJECTION_FOR_TEST_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ott {

struct NvtxEvent {
  enum class Kind { kPush, kPop, kMark };
  Kind kind;
  // The kernel's id.
  int thread;
  // Empty for a pop.
  std::string name;
};

// Signature of the exported TakeNvtxEvents(): the events since the last call.
using TakeNvtxEventsFunction = std::vector<NvtxEvent>();

}  // namespace ott

#endif  // OTT_CORE_NVTX_NVTX_INJECTION_FOR_TEST_H_
