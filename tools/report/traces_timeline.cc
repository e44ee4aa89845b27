#include "tools/report/traces_timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace ott::report {
namespace {

void AddTrace(const TraceFindings& trace, const std::vector<TraceStep>& chosen,
              const waiting::ClockOffset& offset, saved::TimelineBuilder& builder) {
  const auto to_common = [&](int64_t time) { return waiting::OnFirstClock(trace.summary, offset, time); };
  for (const TraceStep& step : trace.steps) {
    const bool is_chosen = std::any_of(chosen.begin(), chosen.end(),
                                       [&](const TraceStep& first) { return first.number == step.number; });
    if (!is_chosen) continue;
    std::vector<saved::TimelineSpan> spans;
    for (const DeviceActivity& span : step.spans) {
      spans.push_back({builder.IndexOf(trace.span_names[span.name], span.collective, false), span.depth,
                       to_common(span.start), span.duration});
    }
    builder.AddRank(step.number, trace.summary.rank, offset.error_bound, to_common(step.begin),
                    to_common(step.end), std::move(spans), step.num_left_out);
  }
}

}  // namespace

TimelinePicture TimelineOfTraces(const std::vector<TraceFindings>& traces,
                                 const std::vector<waiting::ClockOffset>& clocks) {
  saved::TimelineBuilder builder("step");
  std::set<int> ranks;
  for (size_t i = 0; i < traces.size(); ++i) {
    AddTrace(traces[i], traces[0].steps, clocks[i], builder);
    ranks.insert(traces[i].summary.rank);
  }
  return builder.Finish(traces[0].num_steps, static_cast<int64_t>(ranks.size()));
}

}  // namespace ott::report
