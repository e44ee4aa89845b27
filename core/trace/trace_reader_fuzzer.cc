// Input that reads as a trace can be written, and then reads as a whole trace of as many events.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "ott/core/trace/trace_encoder.h"
#include "ott/core/trace/trace_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<ott::Trace> trace = ott::ParseTrace(text, "fuzz");
  if (!trace.ok()) return 0;
  const std::unique_ptr<ott::TraceEncoder> encoder = ott::NewChromeTraceEncoder();
  std::string written;
  encoder->Begin("{}", written);
  for (const ott::TraceTrack& track : trace->tracks) encoder->Add(track, written);
  for (const ott::TraceEvent& event : trace->events) encoder->Add(event, written);
  encoder->End(written);
  const absl::StatusOr<ott::Trace> again = ott::ParseTrace(written, "fuzz again");
  if (!again.ok() || !again->cut.empty() || again->events.size() != trace->events.size()) std::abort();
  return 0;
}
