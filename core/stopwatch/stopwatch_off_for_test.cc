// Calls on a stopwatch that is off, for callgrind to count; see stopwatch_instructions_test.sh. Functions
// with one and with two pairs, so that the difference is a pair without the function around it.

#include "ott/core/stopwatch/stopwatch.h"

namespace {

[[gnu::always_inline]] inline void PairByName() {
  ott::Stopwatch::Get().Start("name");
  asm volatile("");
  ott::Stopwatch::Get().End("name");
}

[[gnu::always_inline]] inline void PairByHandle() {
  static ott::Stopwatch::Measurement measurement("handle");
  measurement.Start();
  asm volatile("");
  measurement.End();
}

[[gnu::always_inline]] inline void PairByScope() {
  OTT_STOPWATCH_SCOPE("scope");
  asm volatile("");
}

}  // namespace

extern "C" {

[[gnu::noinline]] void OneByName() { PairByName(); }

[[gnu::noinline]] void TwoByName() {
  PairByName();
  PairByName();
}

[[gnu::noinline]] void OneByHandle() { PairByHandle(); }

[[gnu::noinline]] void TwoByHandle() {
  PairByHandle();
  PairByHandle();
}

[[gnu::noinline]] void OneByScope() { PairByScope(); }

[[gnu::noinline]] void TwoByScope() {
  PairByScope();
  PairByScope();
}
}

int main() {
  for (int i = 0; i < 1000; ++i) {
    OneByName();
    TwoByName();
    OneByHandle();
    TwoByHandle();
    OneByScope();
    TwoByScope();
  }
}
