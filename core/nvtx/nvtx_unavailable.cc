#include "ott/core/nvtx/nvtx.h"

namespace ott::internal {

absl::Status NvtxStatus() {
  return absl::UnimplementedError(
      "NVTX ranges: built without the NVTX 3 headers; set CUDA_HOME to a CUDA toolkit and build again");
}

void NvtxPush(const char*) {}

void NvtxPop() {}

uint64_t NvtxStartRange(const char*) { return 0; }

void NvtxEndRange(uint64_t) {}

void NvtxMark(const char*) {}

}  // namespace ott::internal
