#include "tools/report/traces_timeline.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace ott::report {
namespace {

constexpr size_t kMaxSteps = 4;

std::set<int64_t> ChooseSteps(const Steps& steps) {
  std::set<int64_t> chosen;
  for (const size_t i : saved::EvenlySpread(steps.size(), kMaxSteps)) chosen.insert(steps[i].second);
  return chosen;
}

void AddTrace(const waiting::RankProfile& trace, const Steps& steps, const std::set<int64_t>& chosen,
              const waiting::ClockOffset& offset, const std::vector<DeviceActivity>& spans,
              saved::TimelineBuilder& builder) {
  const kernels::Profile& profile = *trace.profile;
  const auto to_common = [&](int64_t time) {
    return waiting::OnFirstClock(profile, offset, profile.begin_unix_nanoseconds.value_or(0) + time);
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    if (chosen.count(steps[i].second) == 0) continue;
    const int64_t begin = steps[i].first;
    const int64_t end = i + 1 < steps.size() ? steps[i + 1].first : std::max(begin, profile.last_time);
    std::vector<saved::TimelineSpan> drawn;
    std::vector<int64_t> running;  // ends
    for (const DeviceActivity& span : spans) {
      if (span.start < begin || span.start >= end) continue;
      running.erase(
          std::remove_if(running.begin(), running.end(), [&](int64_t other) { return other <= span.start; }),
          running.end());
      drawn.push_back({builder.IndexOf(span.name, span.collective, false), static_cast<int>(running.size()),
                       to_common(span.start), span.duration});
      running.push_back(span.start + span.duration);
    }
    builder.AddRank(steps[i].second, trace.rank, offset.error_bound, to_common(begin), to_common(end),
                    std::move(drawn));
  }
}

}  // namespace

TimelinePicture TimelineOfTraces(const std::vector<waiting::RankProfile>& traces, std::vector<Steps> steps,
                                 const std::vector<waiting::ClockOffset>& clocks,
                                 const std::vector<std::vector<DeviceActivity>>& spans) {
  for (size_t i = 0; i < traces.size(); ++i) {
    // A trace without steps is one.
    if (steps[i].empty()) steps[i].emplace_back(traces[i].profile->first_time, 0);
  }
  const std::set<int64_t> chosen = ChooseSteps(steps.front());
  saved::TimelineBuilder builder("step");
  for (size_t i = 0; i < std::min(traces.size(), saved::kMaxTimelineRanks); ++i)
    AddTrace(traces[i], steps[i], chosen, clocks[i], spans[i], builder);
  return builder.Finish(static_cast<int64_t>(steps.front().size()), static_cast<int64_t>(traces.size()));
}

}  // namespace ott::report
