#include "tools/report/traces_timeline.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace ott::report {
namespace {

constexpr size_t kMaxSteps = 4;
constexpr size_t kMaxNames = 200;

std::set<int64_t> ChooseSteps(const Steps& steps) {
  std::set<int64_t> chosen;
  const size_t count = std::min(steps.size(), kMaxSteps);
  for (size_t i = 0; i < count; ++i)
    chosen.insert(steps[count == 1 ? 0 : i * (steps.size() - 1) / (count - 1)].second);
  return chosen;
}

// To the first trace's clock, nanoseconds since 1970 where that is known.
int64_t ToCommon(const prof::Profile& profile, const ranks::ClockOffset& offset, int64_t time) {
  const double length = std::max(1.0, static_cast<double>(profile.last_time - profile.first_time));
  const double drift = static_cast<double>(offset.at_end - offset.at_begin) / length;
  return time + profile.begin_unix_nanoseconds.value_or(0) + offset.at_begin +
         static_cast<int64_t>(drift * static_cast<double>(time - profile.first_time));
}

class Builder {
 public:
  explicit Builder(std::set<int64_t> chosen) : chosen_(std::move(chosen)) {}

  void Add(const ranks::RankTrace& trace, const Steps& steps, const ranks::ClockOffset& offset,
           const std::vector<DeviceSpan>& spans) {
    const prof::Profile& profile = *trace.profile;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (chosen_.count(steps[i].second) == 0) continue;
      const int64_t begin = steps[i].first;
      const int64_t end = i + 1 < steps.size() ? steps[i + 1].first : std::max(begin, profile.last_time);
      SampledTimeline::Iteration& iteration = iterations_[steps[i].second];
      iteration.iteration = steps[i].second;
      iteration.error_bound = std::max(iteration.error_bound, offset.error_bound);
      SampledTimeline::Rank& rank = iteration.ranks.emplace_back();
      rank.rank = trace.rank;
      rank.begin = ToCommon(profile, offset, begin);
      rank.end = ToCommon(profile, offset, end);
      std::vector<int64_t> running;  // ends
      for (const DeviceSpan& span : spans) {
        if (span.start < begin || span.start >= end) continue;
        running.erase(std::remove_if(running.begin(), running.end(),
                                     [&](int64_t other) { return other <= span.start; }),
                      running.end());
        rank.spans.push_back({IndexOf(span), static_cast<int>(running.size()),
                              ToCommon(profile, offset, span.start), span.duration});
        running.push_back(span.start + span.duration);
      }
    }
  }

  SampledTimeline Finish() {
    for (auto& [number, iteration] : iterations_) timeline_.iterations.push_back(std::move(iteration));
    FinishTimeline(&timeline_);
    return std::move(timeline_);
  }

 private:
  int IndexOf(const DeviceSpan& span) {
    const bool is_full = timeline_.names.size() >= kMaxNames && index_.count(span.name) == 0;
    const std::string name = is_full ? "(others)" : span.name;
    const auto [known, is_new] = index_.try_emplace(name, static_cast<int>(timeline_.names.size()));
    if (is_new) timeline_.names.push_back({name, span.collective, false});
    return known->second;
  }

  const std::set<int64_t> chosen_;
  SampledTimeline timeline_;
  std::map<std::string, int> index_;
  std::map<int64_t, SampledTimeline::Iteration> iterations_;
};

}  // namespace

SampledTimeline TimelineOfTraces(const std::vector<ranks::RankTrace>& traces, std::vector<Steps> steps,
                                 const std::vector<ranks::ClockOffset>& clocks,
                                 const std::vector<std::vector<DeviceSpan>>& spans) {
  for (size_t i = 0; i < traces.size(); ++i) {
    // A trace without steps is one.
    if (steps[i].empty()) steps[i].emplace_back(traces[i].profile->first_time, 0);
  }
  Builder builder(ChooseSteps(steps.front()));
  for (size_t i = 0; i < std::min(traces.size(), kMaxTimelineRanks); ++i)
    builder.Add(traces[i], steps[i], clocks[i], spans[i]);
  SampledTimeline timeline = builder.Finish();
  timeline.num_sampled = static_cast<int64_t>(steps.front().size());
  timeline.num_ranks = static_cast<int64_t>(traces.size());
  return timeline;
}

}  // namespace ott::report
