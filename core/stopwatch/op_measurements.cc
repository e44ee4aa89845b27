#include "ott/core/stopwatch/op_measurements.h"

#include "ott/core/stopwatch/stopwatch.h"

namespace ott {

void MeasureOps(OpRanges::Options& options) {
  options.begin_op = [](std::string_view name) -> void* {
    Stopwatch& stopwatch = Stopwatch::Get();
    return stopwatch.enabled() ? new Stopwatch::Scope(stopwatch, name) : nullptr;
  };
  options.end_op = [](void* begun) { delete static_cast<Stopwatch::Scope*>(begun); };
}

}  // namespace ott
