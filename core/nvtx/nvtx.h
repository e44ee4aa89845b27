// The few calls of NVTX 3 that the range wrapper makes. In a build without NVTX they do nothing, and
// NvtxStatus() says so.

#ifndef OTT_CORE_NVTX_NVTX_H_
#define OTT_CORE_NVTX_NVTX_H_

#include "absl/status/status.h"

namespace ott::internal {

// UNIMPLEMENTED in a build without NVTX.
absl::Status NvtxStatus();

void NvtxPush(const char* name);
void NvtxPop();
void NvtxMark(const char* name);

}  // namespace ott::internal

#endif  // OTT_CORE_NVTX_NVTX_H_
