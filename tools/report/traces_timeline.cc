#include "tools/report/traces_timeline.h"

#include <algorithm>
#include <cstddef>
#include <set>

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
    saved::SampledTimeline::Rank& rank = builder.AddRank(steps[i].second, trace.rank, offset.error_bound);
    rank.begin = to_common(begin);
    rank.end = to_common(end);
    std::vector<int64_t> running;  // ends
    for (const DeviceActivity& span : spans) {
      if (span.start < begin || span.start >= end) continue;
      running.erase(
          std::remove_if(running.begin(), running.end(), [&](int64_t other) { return other <= span.start; }),
          running.end());
      rank.spans.push_back({builder.IndexOf(span.name, span.collective, false),
                            static_cast<int>(running.size()), to_common(span.start), span.duration});
      running.push_back(span.start + span.duration);
    }
  }
}

}  // namespace

saved::SampledTimeline TimelineOfTraces(const std::vector<waiting::RankProfile>& traces,
                                        std::vector<Steps> steps,
                                        const std::vector<waiting::ClockOffset>& clocks,
                                        const std::vector<std::vector<DeviceActivity>>& spans) {
  for (size_t i = 0; i < traces.size(); ++i) {
    // A trace without steps is one.
    if (steps[i].empty()) steps[i].emplace_back(traces[i].profile->first_time, 0);
  }
  const std::set<int64_t> chosen = ChooseSteps(steps.front());
  saved::TimelineBuilder builder;
  for (size_t i = 0; i < std::min(traces.size(), saved::kMaxTimelineRanks); ++i)
    AddTrace(traces[i], steps[i], chosen, clocks[i], spans[i], builder);
  saved::SampledTimeline timeline = builder.Finish();
  timeline.num_sampled = static_cast<int64_t>(steps.front().size());
  timeline.num_ranks = static_cast<int64_t>(traces.size());
  return timeline;
}

}  // namespace ott::report
