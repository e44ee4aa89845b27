// A plug-in that links the library statically.

#include <cstdint>
#include <string>

#include "ott/core/base/process_wide.h"

namespace {

struct Counter {
  int64_t value = 0;
};

ott::ProcessWide<Counter> counter("ott.test.Counter");
const ott::ProcessWide<Counter>::JoinAtLoad join_at_load(counter);

}  // namespace

extern "C" {

int64_t* CounterOrNull() {
  const auto found = counter.Find();
  return found.ok() ? &(*found)->value : nullptr;
}

const char* CounterError() {
  static std::string error;
  error = std::string(counter.Find().status().message());
  return error.c_str();
}

bool CounterIsEnabled() { return counter.IfEnabled() != nullptr; }

void SetCounterEnabled(bool enabled) { counter.SetEnabled(enabled); }
}
