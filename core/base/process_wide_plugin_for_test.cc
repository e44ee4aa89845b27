// A plug-in that links the library statically. With OTT_LAZY it looks for the instance at the first call.

#include <cstdint>

#include "ott/core/base/process_wide.h"

namespace {

struct Counter {
  int64_t value = 0;
};

ott::ProcessWide<Counter> counter("ott.test.Counter");
#if !defined(OTT_LAZY)
const ott::ProcessWide<Counter>::JoinAtLoad join_at_load(counter);
#endif

}  // namespace

extern "C" {

int64_t* CounterOrNull() {
  Counter* const found = counter.Find();
  return found != nullptr ? &found->value : nullptr;
}

const char* CounterError() {
  counter.Find();
  return counter.refusal();
}

bool CounterIsEnabled() { return counter.IfEnabled() != nullptr; }

void SetCounterEnabled(bool enabled) { counter.SetEnabled(enabled); }
}
