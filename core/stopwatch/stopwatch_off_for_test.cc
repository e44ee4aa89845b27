// Calls on a stopwatch that is off, for callgrind to count; see stopwatch_instructions_test.sh.

#include "ott/core/stopwatch/stopwatch.h"

extern "C" {

[[gnu::noinline]] void PairByName() {
  ott::Stopwatch::Get().Start("name");
  asm volatile("");
  ott::Stopwatch::Get().End("name");
}

[[gnu::noinline]] void PairByHandle() {
  static ott::Stopwatch::Measurement measurement("handle");
  measurement.Start();
  asm volatile("");
  measurement.End();
}

[[gnu::noinline]] void PairByScope() {
  OTT_STOPWATCH_SCOPE("scope");
  asm volatile("");
}
}

int main() {
  for (int i = 0; i < 1000; ++i) {
    PairByName();
    PairByHandle();
    PairByScope();
  }
}
