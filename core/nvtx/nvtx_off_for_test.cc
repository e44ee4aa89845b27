// Calls on a range wrapper that is off, for callgrind to count; see off_instructions_test.sh.

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

extern "C" {

[[gnu::noinline]] void OnePushAndPop() { PushAndPop(); }

[[gnu::noinline]] void TwoPushAndPop() {
  PushAndPop();
  PushAndPop();
}

[[gnu::noinline]] void OneScope() { Scope(); }

[[gnu::noinline]] void TwoScope() {
  Scope();
  Scope();
}
}

int main() {
  for (int i = 0; i < 1000; ++i) {
    OnePushAndPop();
    TwoPushAndPop();
    OneScope();
    TwoScope();
  }
}
