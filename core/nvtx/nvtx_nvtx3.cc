#include <nvtx3/nvToolsExt.h>

#include "ott/core/nvtx/nvtx.h"

namespace ott::internal {

absl::Status NvtxStatus() { return absl::OkStatus(); }

void NvtxPush(const char* name) { nvtxRangePushA(name); }

void NvtxPop() { nvtxRangePop(); }

uint64_t NvtxStartRange(const char* name) { return nvtxRangeStartA(name); }

void NvtxEndRange(uint64_t id) { nvtxRangeEnd(id); }

void NvtxMark(const char* name) { nvtxMarkA(name); }

}  // namespace ott::internal
