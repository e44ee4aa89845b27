// The few calls of NVTX 3 that the range wrapper and the stopwatch make. In a build without NVTX they do
// nothing, and NvtxStatus() says so.

#ifndef OTT_CORE_NVTX_NVTX_H_
#define OTT_CORE_NVTX_NVTX_H_

#include <cstdint>
#include <string_view>
#include <variant>

#include "absl/status/status.h"

namespace ott {

// The payloads that NVTX 3 knows.
using NvtxPayload = std::variant<std::monostate, uint64_t, int64_t, double, uint32_t, int32_t, float>;

namespace internal {

// nvtxDomainHandle_t, null for the default domain, and nvtxStringHandle_t.
using NvtxDomainHandle = void*;
using NvtxStringHandle = void*;

// nvtxEventAttributes_t.
struct NvtxEventAttributes {
  // One of these two.
  const char* text = nullptr;
  NvtxStringHandle registered = nullptr;
  // 0: none.
  uint32_t category = 0;
  // Alpha, red, green, blue from the high byte on; 0: none.
  uint32_t color = 0;
  NvtxPayload payload;
};

// Returns UNIMPLEMENTED in a build without NVTX.
absl::Status NvtxStatus();

NvtxDomainHandle NvtxCreateDomain(const char* name);
NvtxStringHandle NvtxRegisterString(NvtxDomainHandle domain, const char* text);
void NvtxNameCategory(NvtxDomainHandle domain, uint32_t category, const char* name);

void NvtxPush(const char* name);
// Pushes a range without other attributes. REQUIRES: registered is not null.
void NvtxPush(NvtxDomainHandle domain, NvtxStringHandle registered);
void NvtxPush(NvtxDomainHandle domain, const NvtxEventAttributes& attributes);
void NvtxPop();
void NvtxPop(NvtxDomainHandle domain);
void NvtxMark(NvtxDomainHandle domain, const NvtxEventAttributes& attributes);

// Starts a range of the process, which may end on another thread.
uint64_t NvtxStartRange(const char* name);
void NvtxEndRange(uint64_t id);

}  // namespace internal
}  // namespace ott

#endif  // OTT_CORE_NVTX_NVTX_H_
