#include "tools/trace/join_traces.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/trace/trace_file.h"
#include "ott/core/trace/write_trace.h"

namespace ott::trace {
namespace {

// Durations by eighths of octaves; marks and counters come after all of them.
constexpr int kPerOctave = 8;
constexpr int kNumBuckets = 64 * kPerOctave + 1;

int BucketOf(const TraceEvent& event) {
  if (event.type == TraceEvent::Type::kMark || event.type == TraceEvent::Type::kCounter)
    return kNumBuckets - 1;
  return event.duration < 1 ? 0
                            : static_cast<int>(std::log2(static_cast<double>(event.duration)) * kPerOctave);
}

std::string InfoOf(const RunTraces& traces) {
  std::string json = ProtoToJson(traces.info(), JsonLayout::kOneLine);
  json.pop_back();  // the newline
  return json;
}

// Calls add() with all that comes before the events of a trace; a rank's windows are one process.
template <typename Add>
void AddNames(const Trace& trace, int64_t* last_rank, Add add) {
  if (trace.info.rank() != *last_rank) add(ProcessOf(trace.info));
  *last_rank = trace.info.rank();
  for (const TraceTrack& track : trace.tracks) add(track);
}

// The first bucket whose events fit together with those of all later ones.
absl::StatusOr<int> FirstBucketThatFits(RunTraces& traces, const std::string& output, int64_t max_bytes) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TraceEncoder> encoder, TraceEncoderFor(output));
  std::array<int64_t, kNumBuckets> bytes{};
  int64_t used = 0;
  std::string out;
  int64_t last_rank = -1;
  traces.Visit([&](const Trace& trace) {
    AddNames(trace, &last_rank, [&](const auto& name) { encoder->Add(name, out); });
    used += static_cast<int64_t>(out.size());
    for (const TraceEvent& event : trace.events) {
      out.clear();
      encoder->Add(event, out);
      // Ends that would otherwise come with a later event.
      encoder->End(out);
      bytes[BucketOf(event)] += static_cast<int64_t>(out.size());
    }
    out.clear();
  });
  encoder->Begin(InfoOf(traces), out);
  encoder->End(out);
  used += static_cast<int64_t>(out.size());
  if (used > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-size ", max_bytes, ": the names of ranks and threads alone take ", used, " bytes"));
  }
  int bucket = kNumBuckets;
  while (bucket > 0 && used + bytes[bucket - 1] <= max_bytes) used += bytes[--bucket];
  return bucket;
}

// Marks where the events of a file stop early.
TraceEvent CutMark(const Trace& trace) {
  TraceEvent mark;
  mark.type = TraceEvent::Type::kMark;
  mark.process = trace.info.rank();
  mark.name = trace.cut;
  mark.category = "ott trace";
  for (const TraceEvent& event : trace.events) {
    if (event.start + event.duration < mark.start) continue;
    mark.start = event.start + event.duration;
    mark.track = event.track;
  }
  return mark;
}

}  // namespace

absl::StatusOr<JoinedTrace> JoinTraces(RunTraces& traces, const std::string& output, int64_t max_bytes) {
  int first_bucket = 0;
  if (max_bytes > 0) {
    OTT_ASSIGN_OR_RETURN(first_bucket, FirstBucketThatFits(traces, output, max_bytes));
  }
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TraceFile> file, TraceFile::Create(output, InfoOf(traces)));
  JoinedTrace joined;
  int64_t last_rank = -1;
  int64_t longest_left_out = 0;
  traces.Visit([&](const Trace& trace) {
    AddNames(trace, &last_rank, [&](const auto& name) { file->Add(name); });
    for (const TraceEvent& event : trace.events) {
      if (BucketOf(event) < first_bucket) {
        ++joined.num_left_out;
        longest_left_out = std::max(longest_left_out, event.duration);
      } else {
        file->Add(event);
        ++joined.num_events;
      }
    }
    if (!trace.cut.empty()) file->Add(CutMark(trace));
  });
  // Where not even marks fit, nothing is left.
  joined.shortest =
      first_bucket == kNumBuckets
          ? longest_left_out + 1
          : static_cast<int64_t>(std::ceil(std::exp2(static_cast<double>(first_bucket) / kPerOctave)));
  OTT_RETURN_IF_ERROR(file->Commit());
  return joined;
}

}  // namespace ott::trace
