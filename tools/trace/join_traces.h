// One timeline of all ranks.

#ifndef OTT_TOOLS_TRACE_JOIN_TRACES_H_
#define OTT_TOOLS_TRACE_JOIN_TRACES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/trace/read_run_traces.h"

namespace ott::trace {

struct JoinedTrace {
  int64_t num_events = 0;
  // Left out to stay below the size: events that took less than this, in nanoseconds.
  int64_t num_left_out = 0;
  int64_t shortest = 0;
};

// Writes the traces to a file of the format of its name (core/trace/trace_file.h). max_bytes: its size
// before compression, for viewers that take no more; the shortest slices are left out first, marks and
// counters last. 0: any. INVALID_ARGUMENT if not even names and notes fit.
absl::StatusOr<JoinedTrace> JoinTraces(RunTraces& traces, const std::string& output, int64_t max_bytes);

}  // namespace ott::trace

#endif  // OTT_TOOLS_TRACE_JOIN_TRACES_H_
