// Reads traces in Chrome's format, whoever wrote them: torch.profiler, this library, StragglerAnalysis.

#ifndef OTT_CORE_CHROME_TRACE_READ_EVENTS_H_
#define OTT_CORE_CHROME_TRACE_READ_EVENTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/chrome_trace/byte_source.h"
#include "ott/core/chrome_trace/event_parser.h"

namespace ott::chrome_trace {

// Called in the order of the file. What they are given lives until they return.
struct Visitor {
  std::function<void(const Event&)> event;
  // A member beside the events: its name, and its value as JSON, behind which TraceSplitter::kPadding bytes
  // may be read.
  std::function<void(std::string_view name, std::string_view json)> member = [](std::string_view,
                                                                                std::string_view) {};
};

// The result of ReadEvents().
struct Reading {
  // False: the text begins with neither { nor [.
  bool began = false;
  int64_t num_events = 0;
  int64_t num_bytes = 0;
  // Empty, or why and at which byte the end is missing; whole events before it came.
  std::string cut;
  // Events and bytes between them that are no JSON, and what is too long: left out.
  int64_t num_left_out = 0;
  // All that is not as it should be, but `cut`.
  std::vector<std::string> notes;
};

// Reads an object with "traceEvents", or the list of events alone. A window of the text is in memory, however
// large it is. Events that are no JSON are left out, bytes that are no UTF-8 are replaced.
Reading ReadEvents(ByteSource& source, const Visitor& visitor);

// Calls `member` for those before the events.
void ReadMembersBeforeEvents(ByteSource& source,
                             const std::function<void(std::string_view name, std::string_view json)>& member);

// Returns true if one of the first thousand events is as torch.profiler writes them; false for this library's
// own.
bool IsOfTorch(ByteSource& source);

}  // namespace ott::chrome_trace

#endif  // OTT_CORE_CHROME_TRACE_READ_EVENTS_H_
