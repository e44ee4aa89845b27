// A plug-in that links the library statically.

#include <string>

#include "ott/core/stopwatch/stopwatch.h"

extern "C" {

// "" or the error.
const char* EnableStopwatch(int num_warmup_iters) {
  static std::string message;
  ott::Stopwatch::Options options;
  options.num_warmup_iters = num_warmup_iters;
  message = std::string(ott::Stopwatch::Get().Enable(options).message());
  return message.c_str();
}

bool StopwatchIsEnabled() { return ott::Stopwatch::Get().enabled(); }

void MeasureAround(const char* name, void (*work)()) {
  const ott::Stopwatch::Scope scope(name);
  work();
}

void StartMeasurement(const char* name) { ott::Stopwatch::Get().Start(name); }

void EndMeasurement(const char* name) { ott::Stopwatch::Get().End(name); }

void FinishIteration() { ott::Stopwatch::Get().FinishIter(); }

const char* Table() {
  static std::string table;
  table = ott::Stopwatch::Get().Table();
  return table.c_str();
}
}
