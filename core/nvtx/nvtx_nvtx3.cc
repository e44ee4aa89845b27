#include <nvtx3/nvToolsExt.h>

#include "ott/core/nvtx/nvtx.h"

namespace ott::internal {

absl::Status NvtxStatus() { return absl::OkStatus(); }

void NvtxPush(const char* name) { nvtxRangePushA(name); }

void NvtxPop() { nvtxRangePop(); }

void NvtxMark(const char* name) { nvtxMarkA(name); }

}  // namespace ott::internal
