// The events that the injection library for tests saw, in the order in which they came.

#ifndef OTT_CORE_NVTX_NVTX_INJECTION_FOR_TEST_H_
#define OTT_CORE_NVTX_NVTX_INJECTION_FOR_TEST_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ott {

struct NvtxEvent {
  enum class Kind { kPush, kPop, kMark, kStart, kEnd, kCreateDomain, kRegisterString, kNameCategory };
  Kind kind;
  // The kernel's id.
  int thread = 0;
  // Empty for a pop and an end. Of a registered string, its text after '#'.
  std::string name = {};
  // Empty for the default domain.
  std::string domain = {};
  uint32_t category = 0;
  uint32_t color = 0;
  // "double 0.5", or empty.
  std::string payload = {};
  // The number of a start and its end, counted from 1 since the last TakeNvtxEvents().
  uint64_t range = 0;
};

// Returns "push NAME", "pop", "mark NAME", "start NAME RANGE", "end RANGE" and so on, followed by "in
// DOMAIN", "category N", "color N" and the payload where they are given.
inline std::string ToString(const NvtxEvent& event) {
  static constexpr const char* kKinds[] = {
      "push", "pop", "mark", "start", "end", "create domain", "register string", "name category"};
  std::string result = kKinds[static_cast<int>(event.kind)];
  if (!event.name.empty()) result += " " + event.name;
  if (event.range != 0) result += " " + std::to_string(event.range);
  if (!event.domain.empty()) result += " in " + event.domain;
  if (event.category != 0) result += " category " + std::to_string(event.category);
  if (event.color != 0) result += " color " + std::to_string(event.color);
  if (!event.payload.empty()) result += " " + event.payload;
  return result;
}

// Signature of the exported TakeNvtxEvents(): the events since the last call.
using TakeNvtxEventsFunction = std::vector<NvtxEvent>();

// Does the same, called in the library that NVTX loaded at its first use.
inline std::vector<NvtxEvent> Take() {
  void* const injection = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
  if (injection == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  return reinterpret_cast<TakeNvtxEventsFunction*>(dlsym(injection, "TakeNvtxEvents"))();
}

inline std::vector<std::string> Received() {
  std::vector<std::string> result;
  for (const NvtxEvent& event : Take()) result.push_back(ToString(event));
  return result;
}

}  // namespace ott

#endif  // OTT_CORE_NVTX_NVTX_INJECTION_FOR_TEST_H_
