// A profiler's window as a file.

#ifndef OTT_CORE_TRACE_WRITE_TRACE_H_
#define OTT_CORE_TRACE_WRITE_TRACE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "ott/core/events/trace_event.h"
#include "ott/core/trace/profiler.h"
#include "ott/core/trace/trace_info.pb.h"

namespace ott {

// Writes the window whole or not at all, in the format of the path's ending (trace_file.h). `info` has what
// is known of the rank and its clock, and may be empty; the rest is filled in.
absl::Status WriteTrace(const Profiler::Window& window, const std::string& path, TraceInfo info = {});

// Returns a function for Profiler::Options::on_window: it writes each window into a folder that TensorBoard's
// plug-in for PyTorch's profiler looks through, as DIR/WORKER.MILLISECONDS.pt.trace.json, with .gz behind it
// if asked for. worker: HOST_PID if empty.
std::function<absl::Status(const Profiler::Window&)> TensorBoardTraceHandler(std::string dir,
                                                                             std::string worker = "",
                                                                             bool gzip = false);

// Returns how a trace calls its rank: "rank 3 (host)" and "clock +12.3 us +- 1.2 us of rank 0's", as far as
// known.
TraceProcess ProcessOf(const TraceInfo& info);

}  // namespace ott

#endif  // OTT_CORE_TRACE_WRITE_TRACE_H_
