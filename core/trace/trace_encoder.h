// The bytes of a trace in a file format.

#ifndef OTT_CORE_TRACE_TRACE_ENCODER_H_
#define OTT_CORE_TRACE_TRACE_ENCODER_H_

#include <memory>
#include <string>
#include <string_view>

#include "ott/core/events/trace_event.h"

namespace ott {

// Appends to `out`, piece by piece: Begin(), then processes, tracks and events in any order, each process and
// track before its events, then End(). Not thread-safe.
class TraceEncoder {
 public:
  virtual ~TraceEncoder() = default;

  // info: a JSON object that tells what the trace is.
  virtual void Begin(std::string_view info, std::string& out) = 0;
  virtual void Add(const TraceProcess& process, std::string& out) = 0;
  virtual void Add(const TraceTrack& track, std::string& out) = 0;
  virtual void Add(const TraceEvent& event, std::string& out) = 0;
  virtual void End(std::string& out) = 0;
};

// Writes Chrome's Trace Event Format, JSON, an event a line; times are microseconds with three decimals. What
// is not UTF-8 in names becomes U+FFFD. A counter that is not finite becomes a mark that says so.
std::unique_ptr<TraceEncoder> NewChromeTraceEncoder();

// Writes Perfetto's protobuf (perfetto.protos.Trace). Slices of a track come in the order of their starts,
// those that start together the longest first.
std::unique_ptr<TraceEncoder> NewPerfettoEncoder();

}  // namespace ott

#endif  // OTT_CORE_TRACE_TRACE_ENCODER_H_
