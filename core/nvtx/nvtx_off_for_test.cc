// Calls on a range wrapper that is off, for callgrind to count; see off_instructions_test.sh.

#include "ott/core/base/off_for_test.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"

namespace {

[[gnu::always_inline]] inline void PushAndPop() {
  ott::NvtxRangeWrapper::Get().Push("name");
  asm volatile("");
  ott::NvtxRangeWrapper::Get().Pop("name");
}

[[gnu::always_inline]] inline void Scope() {
  OTT_NVTX_SCOPE("scope");
  asm volatile("");
}

}  // namespace

#define KINDS(USE) USE(PushAndPop) USE(Scope)
OTT_OFF_PROGRAM(KINDS)
