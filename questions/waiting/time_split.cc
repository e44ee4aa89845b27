#include "ott/questions/waiting/time_split.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ott/core/op_cost/kernel_name.h"

namespace ott::waiting {
namespace {

using kernels::kNone;
using kernels::OpLabel;
using kernels::Profile;

struct Interval {
  int64_t begin;
  int64_t end;
};

// Sorted, without overlaps.
using Intervals = std::vector<Interval>;

Intervals Union(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  Intervals result;
  for (const Interval& interval : intervals) {
    if (!result.empty() && interval.begin <= result.back().end) {
      result.back().end = std::max(result.back().end, interval.end);
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

Intervals Union(const Intervals& a, const Intervals& b) {
  Intervals both = a;
  both.insert(both.end(), b.begin(), b.end());
  return Union(std::move(both));
}

int64_t Length(const Intervals& intervals) {
  int64_t length = 0;
  for (const Interval& interval : intervals) length += interval.end - interval.begin;
  return length;
}

// Returns how much of [begin, end) is in the intervals.
int64_t Within(const Intervals& intervals, int64_t begin, int64_t end) {
  auto at = std::lower_bound(intervals.begin(), intervals.end(), begin,
                             [](const Interval& interval, int64_t time) { return interval.end <= time; });
  int64_t length = 0;
  for (; at != intervals.end() && at->begin < end; ++at)
    length += std::min(end, at->end) - std::max(begin, at->begin);
  return length;
}

struct Activity {
  int64_t begin;
  int64_t end;
  uint32_t launch;
};

bool IsOp(const OpLabel& label) {
  return label.kind == OpLabel::Kind::kOp || label.kind == OpLabel::Kind::kMarker;
}

// An operator in which the host is in a collective, or waits for one.
bool IsOfCollective(const OpLabel& label) {
  const std::string_view name = label.description.op;
  const std::string_view module = label.description.module;
  return IsOp(label) && (IsCollective(label.description) || name == "record_param_comms" ||
                         module == "gloo" || module == "mpi" || name == "wait_tensor");
}

// When the host was in ranges whose labels are asked for.
template <typename IsWanted>
Intervals HostRanges(const Profile& profile, const IsWanted& is_wanted) {
  std::vector<bool> is_taken;
  for (const OpLabel& label : profile.labels) is_taken.push_back(is_wanted(label));
  Intervals intervals;
  for (const Profile::Thread& thread : profile.threads) {
    for (const Profile::Range& range : thread.ranges) {
      if (is_taken[range.label]) intervals.push_back({range.start, range.end});
    }
  }
  return Union(std::move(intervals));
}

TimeSplit SplitHostTime(const Profile& profile) {
  TimeSplit split;
  const Intervals compute =
      HostRanges(profile, [](const OpLabel& label) { return IsOp(label) && !IsOfCollective(label); });
  Intervals communication;
  for (const Profile::HostCollective& collective : profile.host_collectives)
    communication.push_back({collective.start, collective.end});
  communication = Union(std::move(communication));
  split.of_host = true;
  split.total = profile.last_time - profile.first_time;
  split.compute = Length(compute);
  split.communication = Length(communication);
  split.busy = Length(Union(compute, communication));
  split.exposed_communication = split.busy - split.compute;
  split.idle = split.idle_host = split.total - split.busy;
  return split;
}

}  // namespace

TimeSplit& TimeSplit::operator+=(const TimeSplit& other) {
  for (int64_t TimeSplit::*part :
       {&TimeSplit::total, &TimeSplit::compute, &TimeSplit::communication, &TimeSplit::exposed_communication,
        &TimeSplit::copies, &TimeSplit::exposed_copies, &TimeSplit::memsets, &TimeSplit::busy,
        &TimeSplit::idle, &TimeSplit::idle_host, &TimeSplit::idle_collective, &TimeSplit::idle_launch,
        &TimeSplit::idle_queued, &TimeSplit::num_left_out}) {
    this->*part += other.*part;
  }
  of_host = of_host || other.of_host;
  return *this;
}

TimeSplit SplitTime(const Profile& profile) {
  TimeSplit split;
  std::vector<bool> is_communication;
  for (const std::string& name : profile.kernel_names)
    is_communication.push_back(KernelKindOf(name) == KernelKind::kCollective);
  const auto is_launched = [&](uint32_t launch) {
    return launch != kNone && profile.launches[launch].thread != kNone;
  };
  const auto has_launch = [&](const auto& activity) { return is_launched(activity.launch); };
  // A trace of devices alone has no launches.
  const bool takes_all = std::none_of(profile.kernels.begin(), profile.kernels.end(), has_launch) &&
                         std::none_of(profile.transfers.begin(), profile.transfers.end(), has_launch);
  Intervals kernels, memsets, communication, copies;
  std::vector<Activity> activities;
  const auto add = [&](const auto& activity, Intervals* to) {
    if (!takes_all && !is_launched(activity.launch)) {
      ++split.num_left_out;
      return;
    }
    to->push_back({activity.start, activity.end});
    activities.push_back({activity.start, activity.end, activity.launch});
  };
  for (const Profile::Kernel& kernel : profile.kernels)
    add(kernel, is_communication[kernel.name] ? &communication : &kernels);
  for (const Profile::Transfer& transfer : profile.transfers) {
    const std::string_view name = profile.transfer_names[transfer.name];
    const bool is_memset = name.substr(0, 6) == "Memset" || name.substr(0, 6) == "memset";
    add(transfer, is_memset ? &memsets : &copies);
  }
  if (activities.empty()) return SplitHostTime(profile);

  kernels = Union(std::move(kernels));
  communication = Union(std::move(communication));
  copies = Union(std::move(copies));
  const Intervals compute = Union(kernels, memsets);
  const Intervals without_copies = Union(compute, communication);
  split.compute = Length(compute);
  split.memsets = split.compute - Length(kernels);
  split.communication = Length(communication);
  split.exposed_communication = Length(without_copies) - split.compute;
  split.copies = Length(copies);
  split.busy = Length(Union(without_copies, copies));
  split.exposed_copies = split.busy - Length(without_copies);

  std::sort(activities.begin(), activities.end(),
            [](const Activity& a, const Activity& b) { return a.begin < b.begin; });
  const Intervals in_collective = HostRanges(profile, IsOfCollective);
  int64_t busy_until = activities.front().begin;
  for (const Activity& activity : activities) {
    if (activity.begin > busy_until) {
      const bool told =
          is_launched(activity.launch) && profile.launches[activity.launch].nanoseconds != kNone;
      const int64_t call = told ? profile.launches[activity.launch].start : busy_until;
      const int64_t launched = std::clamp(call, busy_until, activity.begin);
      const int64_t waited = Within(in_collective, busy_until, launched);
      split.idle_collective += waited;
      split.idle_host += launched - busy_until - waited;
      (call > busy_until ? split.idle_launch : split.idle_queued) += activity.begin - launched;
    }
    busy_until = std::max(busy_until, activity.end);
  }
  split.total = busy_until - activities.front().begin;
  split.idle = split.total - split.busy;
  return split;
}

}  // namespace ott::waiting
