// The few calls of NVTX 3 that the range wrapper and the stopwatch make. In a build without NVTX they do
// nothing, and NvtxStatus() says so.

#ifndef OTT_CORE_NVTX_NVTX_H_
#define OTT_CORE_NVTX_NVTX_H_

#include <cstdint>

#include "absl/status/status.h"

namespace ott::internal {

// UNIMPLEMENTED in a build without NVTX.
absl::Status NvtxStatus();

void NvtxPush(const char* name);
void NvtxPop();
// A range of the process, which may end on another thread.
uint64_t NvtxStartRange(const char* name);
void NvtxEndRange(uint64_t id);
void NvtxMark(const char* name);

}  // namespace ott::internal

#endif  // OTT_CORE_NVTX_NVTX_H_
