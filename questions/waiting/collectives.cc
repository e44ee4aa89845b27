#include "ott/questions/waiting/collectives.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "ott/core/statistics/policy.h"

namespace ott::waiting {
namespace {

using kernels::kNone;
using kernels::Profile;

// Tells a collective from all others, on every rank: group, name, sequence number or else step, and which of
// those that have all of that in common.
using Key = std::tuple<std::string, std::string, int64_t, int64_t, int64_t>;

bool IsMessage(std::string_view name) {
  return name.find("send") != std::string_view::npos || name.find("recv") != std::string_view::npos;
}

bool NeedsAllRanks(std::string_view name) {
  for (const std::string_view part :
       {"allreduce", "all_reduce", "allgather", "all_gather", "reduce_scatter", "alltoall", "all_to_all",
        "barrier", "AllReduce", "AllGather", "ReduceScatter", "AllToAll"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

int64_t Median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The ends of both traces' collectives that need all ranks: (this one's time, what it is behind the other).
using Differences = std::vector<std::pair<int64_t, int64_t>>;

ClockOffset OffsetOf(const Differences& differences, int64_t begin, int64_t end) {
  ClockOffset offset;
  offset.is_known = true;
  offset.num_collectives = static_cast<int64_t>(differences.size());
  std::vector<int64_t> early, late;
  for (size_t i = 0; i < differences.size(); ++i)
    (2 * i < differences.size() ? early : late).push_back(differences[i].second);
  // A line through the medians of both halves; few collectives tell no drift.
  constexpr size_t kEnough = 20;
  if (differences.size() < kEnough) {
    early.insert(early.end(), late.begin(), late.end());
    offset.at_begin = offset.at_end = Median(early);
  } else {
    const auto y0 = static_cast<double>(Median(early));
    const auto y1 = static_cast<double>(Median(late));
    const auto x0 = static_cast<double>(differences[differences.size() / 4].first);
    const auto x1 = static_cast<double>(differences[differences.size() * 3 / 4].first);
    const double drift = x1 > x0 ? (y1 - y0) / (x1 - x0) : 0;
    offset.at_begin = static_cast<int64_t>(y0 + drift * (static_cast<double>(begin) - x0));
    offset.at_end = static_cast<int64_t>(y0 + drift * (static_cast<double>(end) - x0));
  }
  const double length = std::max(1.0, static_cast<double>(end - begin));
  std::vector<int64_t> residuals;
  for (const auto& [time, difference] : differences) {
    const double expected =
        static_cast<double>(offset.at_begin) +
        static_cast<double>(offset.at_end - offset.at_begin) * static_cast<double>(time - begin) / length;
    residuals.push_back(std::abs(difference - static_cast<int64_t>(expected)));
  }
  std::sort(residuals.begin(), residuals.end());
  offset.error_bound = residuals[residuals.size() * 9 / 10];
  const int64_t agreeing = std::max(offset.error_bound, kAgreeingNanoseconds);
  if (std::abs(offset.at_begin) <= agreeing && std::abs(offset.at_end) <= agreeing) {
    offset.error_bound += std::max(std::abs(offset.at_begin), std::abs(offset.at_end));
    offset.at_begin = offset.at_end = 0;
  }
  return offset;
}

// Which traces have which of the collectives that need all ranks. Jobs have few groups of ranks, so that
// those of thousands of ranks are counted group by group.
class SharedCollectives {
 public:
  SharedCollectives(size_t num_traces, const std::vector<Collective>& collectives)
      : ends_(num_traces), groups_of_(num_traces) {
    for (size_t i = 0; i < collectives.size(); ++i) {
      if (!NeedsAllRanks(collectives[i].kind->name)) continue;
      std::vector<size_t> traces;
      for (const Collective::Part& part : collectives[i].parts) {
        ends_[part.trace].emplace_back(i, part.end);
        traces.push_back(part.trace);
      }
      ++groups_[std::move(traces)];
    }
    for (const auto& group : groups_) {
      for (const size_t trace : group.first) groups_of_[trace].push_back(&group);
    }
  }

  // Counts what each trace shares with one of them.
  void Count(size_t with, std::vector<int64_t>* counts) const {
    counts->assign(ends_.size(), 0);
    for (const auto* group : groups_of_[with]) {
      for (const size_t trace : group->first) (*counts)[trace] += group->second;
    }
  }
  // Calls visit(end in a, end in b) for each that both have.
  template <typename Visit>
  void ForBoth(size_t a, size_t b, const Visit& visit) const {
    auto of_a = ends_[a].begin();
    for (const auto& [collective, end] : ends_[b]) {
      while (of_a != ends_[a].end() && of_a->first < collective) ++of_a;
      if (of_a != ends_[a].end() && of_a->first == collective) visit(of_a->second, end);
    }
  }

 private:
  using Groups = std::map<std::vector<size_t>, int64_t>;  // traces; how many collectives have just these

  std::vector<std::vector<std::pair<size_t, int64_t>>> ends_;  // by trace: collective, its end
  Groups groups_;
  std::vector<std::vector<const Groups::value_type*>> groups_of_;  // by trace
};

// The collectives that a trace shares with one that is aligned.
struct Link {
  int64_t num_shared = 0;
  size_t aligned = 0;

  bool operator<(const Link& other) const {
    return num_shared != other.num_shared ? num_shared < other.num_shared : aligned > other.aligned;
  }
};

}  // namespace

std::string GroupOf(const Profile::CollectiveKind& kind) {
  std::string group = kind.group + "\n";
  for (const char c : kind.group_ranks) {
    if (c != ' ') group.push_back(c);
  }
  return group;
}

Steps StepsOf(const Profile& profile) {
  std::vector<int64_t> number_of(profile.labels.size(), -1);
  for (size_t i = 0; i < profile.labels.size(); ++i) {
    const std::string_view text = profile.labels[i].text;
    if (text.substr(0, kernels::kStepName.size()) == kernels::kStepName)
      (void)std::from_chars(text.data() + kernels::kStepName.size(), text.data() + text.size(), number_of[i]);
  }
  Steps steps;
  for (const Profile::Thread& thread : profile.threads) {
    for (const Profile::Range& range : thread.ranges) {
      if (number_of[range.label] >= 0) steps.emplace_back(range.start, number_of[range.label]);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool AreWindowsOfOneRun(const TraceSummary& a, const TraceSummary& b) {
  if (a.first_time > b.first_time) return AreWindowsOfOneRun(b, a);
  if (a.collectives.empty() || b.collectives.empty() || a.num_steps == 0 || b.num_steps == 0) return false;
  const auto by_step = [](const TraceSummary::Part& one, const TraceSummary::Part& other) {
    return one.step < other.step;
  };
  return a.last_time <= b.first_time &&
         std::max_element(a.collectives.begin(), a.collectives.end(), by_step)->step <
             std::min_element(b.collectives.begin(), b.collectives.end(), by_step)->step;
}

TraceSummary SummarizeCollectives(const RankProfile& trace) {
  const Profile& profile = *trace.profile;
  const int64_t base = profile.begin_unix_nanoseconds.value_or(0);
  TraceSummary summary;
  summary.rank = trace.rank;
  summary.path = profile.path;
  summary.first_time = base + profile.first_time;
  summary.last_time = base + profile.last_time;
  summary.num_steps = profile.num_steps;
  summary.kinds = profile.collective_kinds;
  const Steps steps = StepsOf(profile);
  const auto add = [&](uint32_t kind, int64_t sequence_number, int64_t call, int64_t start, int64_t end) {
    if (IsMessage(profile.collective_kinds[kind].name)) return;
    const auto after = std::upper_bound(steps.begin(), steps.end(),
                                        std::make_pair(call, std::numeric_limits<int64_t>::max()));
    const int64_t step = after == steps.begin() ? 0 : std::prev(after)->second;
    summary.collectives.push_back({kind, sequence_number, step, base + start, base + end});
  };
  for (const Profile::Collective& collective : profile.collectives) {
    const Profile::Kernel& kernel = profile.kernels[collective.kernel];
    const bool has_call = kernel.launch != kNone && profile.launches[kernel.launch].thread != kNone;
    add(collective.kind, collective.sequence_number,
        has_call ? profile.launches[kernel.launch].start : kernel.start, kernel.start, kernel.end);
  }
  for (const Profile::HostCollective& collective : profile.host_collectives)
    add(collective.kind, -1, collective.start, collective.start, collective.end);
  return summary;
}

TraceSummary SummarizeTrace(const RankProfile& trace) {
  TraceSummary summary = SummarizeCollectives(trace);
  summary.split = SplitTime(*trace.profile);
  return summary;
}

std::vector<Collective> MatchCollectives(const std::vector<TraceSummary>& traces) {
  std::map<Key, Collective> matched;
  for (size_t trace = 0; trace < traces.size(); ++trace) {
    std::map<Key, int64_t> occurrences;
    for (const TraceSummary::Part& part : traces[trace].collectives) {
      const Profile::CollectiveKind& kind = traces[trace].kinds[part.kind];
      const bool is_counted = part.sequence_number >= 0;
      Key key(GroupOf(kind), kind.name, part.sequence_number, is_counted ? 0 : part.step, 0);
      std::get<4>(key) = occurrences[key]++;
      Collective& whole = matched[key];
      if (whole.parts.empty()) {
        whole.kind = &kind;
        whole.step = part.step;
      }
      whole.same_message &= whole.kind->in_elements == kind.in_elements &&
                            whole.kind->out_elements == kind.out_elements && whole.kind->dtype == kind.dtype;
      whole.parts.push_back({trace, part.start, part.end});
    }
  }
  std::vector<Collective> result;
  for (auto& [key, collective] : matched) result.push_back(std::move(collective));
  std::stable_sort(result.begin(), result.end(), [](const Collective& a, const Collective& b) {
    return a.parts[0].start < b.parts[0].start;
  });
  return result;
}

int64_t OnFirstClock(const TraceSummary& trace, const ClockOffset& offset, int64_t time) {
  const double length = std::max(1.0, static_cast<double>(trace.last_time - trace.first_time));
  const double drift = static_cast<double>(offset.at_end - offset.at_begin) / length;
  return time + offset.at_begin + static_cast<int64_t>(drift * static_cast<double>(time - trace.first_time));
}

std::vector<ClockOffset> AlignClocks(const std::vector<TraceSummary>& traces,
                                     const std::vector<Collective>& collectives) {
  std::vector<ClockOffset> offsets(traces.size());
  if (traces.empty()) return offsets;
  const SharedCollectives shared(traces.size(), collectives);
  // From what is aligned to what shares most collectives with it; of equal ones, to the first.
  std::vector<Link> links(traces.size());
  std::vector<int64_t> num_shared;
  size_t aligned = 0;
  offsets[0].is_known = true;
  for (;;) {
    shared.Count(aligned, &num_shared);
    const Link* best = nullptr;
    for (size_t trace = 0; trace < traces.size(); ++trace) {
      Link& link = links[trace];
      if (offsets[trace].is_known) continue;
      link = std::max(link, Link{num_shared[trace], aligned});
      if (link.num_shared > 0 && (best == nullptr || *best < link)) best = &link;
    }
    if (best == nullptr) {
      // A later window of the first rank has its clock, and no collectives of the windows before.
      aligned = 0;
      while (aligned < traces.size() && (offsets[aligned].is_known || traces[aligned].rank != traces[0].rank))
        ++aligned;
      if (aligned == traces.size()) return offsets;
      offsets[aligned].is_known = true;
      continue;
    }
    const size_t known = best->aligned;
    const auto other = static_cast<size_t>(best - links.data());
    Differences differences;
    shared.ForBoth(known, other, [&](int64_t known_end, int64_t end) {
      differences.emplace_back(end, OnFirstClock(traces[known], offsets[known], known_end) - end);
    });
    offsets[other] = OffsetOf(differences, traces[other].first_time, traces[other].last_time);
    offsets[other].error_bound += offsets[known].error_bound;
    aligned = other;
  }
}

}  // namespace ott::waiting
