// Reads traces back from Chrome's JSON.

#ifndef OTT_CORE_TRACE_TRACE_READER_H_
#define OTT_CORE_TRACE_TRACE_READER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/events/trace_event.h"
#include "ott/core/trace/trace_info.pb.h"

namespace ott {

// A trace in memory. Movable, not copyable.
struct Trace {
  Trace() = default;
  Trace(Trace&&) = default;
  Trace& operator=(Trace&&) = default;

  // Empty if the file has none, not being ours.
  TraceInfo info;
  std::vector<TraceTrack> tracks;
  // In the order of the file.
  std::vector<TraceEvent> events;
  // Empty, or what of the file is missing or damaged, with the file's name; what is whole is here.
  std::string cut;

  // The events' texts refer to these.
  std::deque<std::string> texts;
};

// Reads a file, compressed or not, by core/chrome_trace. Complete events ("X"), our pairs "b" and "e", marks,
// counters, arrows that follow their event, and names of threads are read, other events are skipped, and so
// are arguments that are no JSON object. An error of the file, or DATA_LOSS if it does not even begin as a
// trace.
absl::StatusOr<Trace> ReadTrace(const std::string& path);

// Returns what a file says about itself before its events; empty if it says nothing. An error of the file.
absl::StatusOr<TraceInfo> ReadTraceInfo(const std::string& path);

// Does ReadTrace() of a text, which must outlive the result.
absl::StatusOr<Trace> ParseTrace(std::string_view text, const std::string& path);

}  // namespace ott

#endif  // OTT_CORE_TRACE_TRACE_READER_H_
