#include "ott/questions/saved/dependency_graph.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"

namespace ott::saved {

void DependencyGraph::AddStep() { step_begin_.push_back(num_operations()); }

int32_t DependencyGraph::AddOperation(int part) {
  OTT_CHECK(num_steps() > 0) << "an operation needs a step";
  group_.push_back(-1);
  part_.push_back(part);
  num_parts_ = std::max(num_parts_, static_cast<size_t>(part) + 1);
  step_begin_.back() = num_operations();
  return num_operations() - 1;
}

void DependencyGraph::AddDependency(int32_t operation, int32_t comes_after) {
  edges_.emplace_back(operation, comes_after);
}

void DependencyGraph::AddGroup(absl::Span<const int32_t> operations) {
  const auto group = static_cast<int32_t>(group_begin_.size()) - 1;
  for (const int32_t operation : operations) {
    OTT_CHECK(group_[operation] < 0) << "operation " << operation << " is of a group already";
    group_[operation] = group;
    members_.push_back(operation);
  }
  group_begin_.push_back(static_cast<int32_t>(members_.size()));
}

absl::Span<const int32_t> DependencyGraph::GroupOf(int32_t operation) const {
  const int32_t group = group_[operation];
  if (group < 0) return {};
  return absl::MakeConstSpan(members_).subspan(group_begin_[group],
                                               group_begin_[group + 1] - group_begin_[group]);
}

absl::Span<const int32_t> DependencyGraph::ComesAfter(int32_t operation) const {
  return absl::MakeConstSpan(before_).subspan(before_begin_[operation],
                                              before_begin_[operation + 1] - before_begin_[operation]);
}

absl::Status DependencyGraph::Finish(absl::FunctionRef<std::string(int32_t operation)> name) {
  before_begin_.assign(group_.size() + 1, 0);
  for (const auto& [operation, unused] : edges_) ++before_begin_[operation + 1];
  std::partial_sum(before_begin_.begin(), before_begin_.end(), before_begin_.begin());
  before_.resize(edges_.size());
  std::vector<int32_t> next(before_begin_.begin(), before_begin_.end() - 1);
  for (const auto& [operation, comes_after] : edges_) before_[next[operation]++] = comes_after;
  edges_ = {};
  order_.reserve(group_.size());
  ends_group_.assign(group_.size(), false);
  for (int step = 0; step < num_steps(); ++step) {
    if (absl::Status status = Sort(step, name); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DependencyGraph::Sort(int step, absl::FunctionRef<std::string(int32_t)> name) {
  const auto [first, last] = OperationsOf(step);
  const int32_t size = last - first;
  // Counts what each operation still waits for before it starts, and lists who waits for it.
  std::vector<int32_t> num_open(size);
  std::vector<int32_t> after_begin(size + 1);
  for (int32_t i = first; i < last; ++i) {
    num_open[i - first] = static_cast<int32_t>(ComesAfter(i).size());
    for (const int32_t before : ComesAfter(i)) {
      OTT_CHECK(before >= first && before < last) << "a dependency between steps";
      ++after_begin[before - first + 1];
    }
  }
  std::partial_sum(after_begin.begin(), after_begin.end(), after_begin.begin());
  std::vector<int32_t> after(after_begin.back());
  std::vector<int32_t> next(after_begin.begin(), after_begin.end() - 1);
  for (int32_t i = first; i < last; ++i) {
    for (const int32_t before : ComesAfter(i)) after[next[before - first]++] = i;
  }

  const size_t begin = order_.size();
  for (int32_t i = first; i < last; ++i) {
    if (num_open[i - first] == 0) order_.push_back(i);
  }
  std::vector<int32_t> num_started_of_group(group_begin_.size());
  for (size_t position = begin; position < order_.size(); ++position) {
    const int32_t started = order_[position];
    absl::Span<const int32_t> ended = absl::MakeConstSpan(&started, 1);
    if (const int32_t group = group_[started]; group >= 0) {
      const absl::Span<const int32_t> members = GroupOf(started);
      if (++num_started_of_group[group] < static_cast<int32_t>(members.size())) continue;
      ends_group_[position] = true;
      ended = members;
    }
    for (const int32_t end : ended) {
      for (int32_t i = after_begin[end - first]; i < after_begin[end - first + 1]; ++i) {
        if (--num_open[after[i] - first] == 0) order_.push_back(after[i]);
      }
    }
  }
  if (order_.size() - begin == static_cast<size_t>(size)) return absl::OkStatus();
  const auto waiting = std::find_if(num_open.begin(), num_open.end(), [](int32_t open) { return open > 0; });
  return DescribeCircle(first + static_cast<int32_t>(waiting - num_open.begin()), num_open, first, name);
}

absl::Status DependencyGraph::DescribeCircle(int32_t waiting, const std::vector<int32_t>& num_open,
                                             int32_t first,
                                             absl::FunctionRef<std::string(int32_t)> name) const {
  const auto is_waiting = [&](int32_t operation) { return num_open[operation - first] > 0; };
  // Each that waits does so for another one that waits, or for a member of that one's group that does.
  std::vector<int32_t> path;
  while (std::find(path.begin(), path.end(), waiting) == path.end()) {
    path.push_back(waiting);
    for (const int32_t before : ComesAfter(waiting)) {
      if (is_waiting(before)) {
        waiting = before;
        break;
      }
      const absl::Span<const int32_t> members = GroupOf(before);
      const auto member = std::find_if(members.begin(), members.end(), is_waiting);
      if (member != members.end()) {
        waiting = *member;
        break;
      }
    }
  }
  constexpr size_t kMaxNamed = 12;
  const size_t begin = std::find(path.begin(), path.end(), waiting) - path.begin();
  std::string circle;
  for (size_t i = begin; i < std::min(path.size(), begin + kMaxNamed); ++i) {
    absl::StrAppend(&circle, name(path[i]), ", which waits for ");
  }
  if (path.size() > begin + kMaxNamed) {
    absl::StrAppend(&circle, path.size() - begin - kMaxNamed, " more, which wait for ");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("operations wait for each other in a circle: ", circle, name(path[begin])));
}

template <int lanes>
void DependencyGraph::ReplayStep(int step, const double* own_times, const double* delays, double* start,
                                 double* end) const {
  const auto [first, last] = OperationsOf(step);
  for (int32_t position = first; position < last; ++position) {
    const int32_t operation = order_[position];
    const int64_t i = operation - first;
    double* const my_start = start + i * lanes;
    for (int lane = 0; lane < lanes; ++lane) my_start[lane] = 0;
    for (const int32_t before : ComesAfter(operation)) {
      const double* const ended = end + static_cast<int64_t>(before - first) * lanes;
      for (int lane = 0; lane < lanes; ++lane) my_start[lane] = std::max(my_start[lane], ended[lane]);
    }
    if (delays != nullptr) {
      for (int lane = 0; lane < lanes; ++lane) my_start[lane] += delays[i];
    }
    if (group_[operation] < 0) {
      for (int lane = 0; lane < lanes; ++lane) {
        end[i * lanes + lane] = my_start[lane] + own_times[i * lanes + lane];
      }
    } else if (ends_group_[position]) {
      double all_started[lanes];
      std::copy_n(my_start, lanes, all_started);
      for (const int32_t member : GroupOf(operation)) {
        const double* const started = start + static_cast<int64_t>(member - first) * lanes;
        for (int lane = 0; lane < lanes; ++lane)
          all_started[lane] = std::max(all_started[lane], started[lane]);
      }
      for (const int32_t member : GroupOf(operation)) {
        const int64_t m = static_cast<int64_t>(member - first) * lanes;
        for (int lane = 0; lane < lanes; ++lane) end[m + lane] = all_started[lane] + own_times[m + lane];
      }
    }
  }
}

std::vector<std::vector<double>> DependencyGraph::Replay(int num_replays, OwnTimes own_times) const {
  // [replay][part][step]
  std::vector<std::vector<std::vector<double>>> seconds(
      num_replays, std::vector<std::vector<double>>(num_parts_, std::vector<double>(num_steps())));
  std::vector<double> longest(num_parts_ * kLanes);
  std::vector<double> own;
  std::vector<double> start;
  std::vector<double> end;
  for (int step = 0; step < num_steps(); ++step) {
    const auto [first, last] = OperationsOf(step);
    const size_t size = static_cast<size_t>(last - first) * kLanes;
    own.resize(size);
    start.resize(size);
    end.resize(size);
    for (int replay = 0; replay < num_replays; replay += kLanes) {
      const int num_lanes = std::min(kLanes, num_replays - replay);
      own_times(replay, first, last, own.data());
      ReplayStep<kLanes>(step, own.data(), nullptr, start.data(), end.data());
      std::fill(longest.begin(), longest.end(), 0);
      for (size_t i = 0; i < size; i += kLanes) {
        double* const of_part = longest.data() + static_cast<size_t>(part_[first + i / kLanes]) * kLanes;
        for (int lane = 0; lane < kLanes; ++lane) of_part[lane] = std::max(of_part[lane], end[i + lane]);
      }
      for (size_t part = 0; part < num_parts_; ++part) {
        for (int lane = 0; lane < num_lanes; ++lane)
          seconds[replay + lane][part][step] = longest[part * kLanes + lane];
      }
    }
  }
  std::vector<std::vector<double>> of_job;
  for (const auto& of_parts : seconds) of_job.push_back(of_parts[LongestPart(of_parts)]);
  return of_job;
}

size_t DependencyGraph::LongestPart(const std::vector<std::vector<double>>& seconds) {
  std::vector<double> sums;
  for (const std::vector<double>& steps : seconds)
    sums.push_back(std::accumulate(steps.begin(), steps.end(), 0.0));
  return static_cast<size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
}

DependencyGraph::Times DependencyGraph::ReplayInFull(absl::Span<const double> own_times,
                                                     absl::Span<const double> delays) const {
  Times times;
  times.start.resize(num_operations());
  times.end.resize(num_operations());
  times.seconds.assign(num_parts_, std::vector<double>(num_steps()));
  for (int step = 0; step < num_steps(); ++step) {
    const auto [first, last] = OperationsOf(step);
    ReplayStep<1>(step, own_times.data() + first, delays.empty() ? nullptr : delays.data() + first,
                  times.start.data() + first, times.end.data() + first);
    for (int32_t i = first; i < last; ++i) {
      double& seconds = times.seconds[part_[i]][step];
      seconds = std::max(seconds, times.end[i]);
    }
  }
  times.longest_part = LongestPart(times.seconds);
  return times;
}

std::vector<int32_t> DependencyGraph::CriticalPath(int step, const Times& times) const {
  const auto [first, last] = OperationsOf(step);
  std::vector<int32_t> path;
  int32_t operation = -1;
  for (int32_t i = first; i < last; ++i) {
    if (static_cast<size_t>(part_[i]) != times.longest_part) continue;
    if (operation < 0 || times.end[i] > times.end[operation]) operation = i;
  }
  if (operation < 0) return path;
  const auto by_end = [&](int32_t a, int32_t b) { return times.end[a] < times.end[b]; };
  const auto by_start = [&](int32_t a, int32_t b) { return times.start[a] < times.start[b]; };
  while (true) {
    path.push_back(operation);
    // The member that came last is what the others waited for.
    if (const absl::Span<const int32_t> members = GroupOf(operation); !members.empty()) {
      const int32_t latest = *std::max_element(members.begin(), members.end(), by_start);
      if (times.start[latest] > times.start[operation]) {
        operation = latest;
        path.push_back(operation);
      }
    }
    const absl::Span<const int32_t> before = ComesAfter(operation);
    if (before.empty()) return path;
    operation = *std::max_element(before.begin(), before.end(), by_end);
  }
}

}  // namespace ott::saved
