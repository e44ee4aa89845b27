// Calls on a stopwatch that is off, for callgrind to count; see off_instructions_test.sh.

#include "ott/core/base/off_for_test.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace {

[[gnu::always_inline]] inline void ByName() {
  ott::Stopwatch::Get().Start("name");
  asm volatile("");
  ott::Stopwatch::Get().End("name");
}

[[gnu::always_inline]] inline void ByHandle() {
  static ott::Stopwatch::Measurement measurement("handle");
  measurement.Start();
  asm volatile("");
  measurement.End();
}

[[gnu::always_inline]] inline void ByScope() {
  OTT_STOPWATCH_SCOPE("scope");
  asm volatile("");
}

}  // namespace

#define KINDS(USE) USE(ByName) USE(ByHandle) USE(ByScope)
OTT_OFF_PROGRAM(KINDS)
