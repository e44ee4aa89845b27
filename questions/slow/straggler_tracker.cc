#include "ott/questions/slow/straggler_tracker.h"

#include <algorithm>
#include <vector>

#include "ott/core/statistics/policy.h"
#include "ott/questions/slow/slow_ranks.h"

namespace ott {

StragglerHistory StragglerTracker::Add(const ClusterSummary& interval, int64_t first_iteration) {
  // A gather at the end of a run may come right after another one.
  if (interval.iteration().ranks.empty()) return last_;
  StragglerHistory history;
  const ClusterStats stats = JudgeRanks(interval, 0, kWindowErrorShare);
  history.set_num_iterations(stats.max_measured_iters());
  if (const TimeOfRank* slowest = interval.slowest(); slowest != nullptr && stats.num_ranks() > 1) {
    SlowestCount& count = slowest_[slowest->rank()];
    count.set_rank(slowest->rank());
    count.set_host(slowest->host());
    count.set_num_intervals(count.num_intervals() + 1);
    ++num_intervals_;
  }
  const bool is_told = stats.has_straggler() || stats.has_detectable();
  if (is_told && !stats.has_straggler()) {
    straggler_.reset();
    num_in_a_row_ = 0;
  } else if (is_told) {
    if (straggler_ != stats.straggler().rank()) {
      straggler_ = stats.straggler().rank();
      num_in_a_row_ = 0;
      since_iteration_ =
          stats.straggler().has_since_iteration() ? stats.straggler().since_iteration() : first_iteration;
    }
    ++num_in_a_row_;
    *history.mutable_straggler() = stats.straggler();
    history.set_since_iteration(since_iteration_);
  }
  history.set_num_intervals(num_in_a_row_);
  history.set_persistent(num_in_a_row_ >= kPersistentIntervals);

  constexpr size_t kMaxCounts = 8;
  std::vector<SlowestCount> counts;
  for (const auto& [unused_rank, count] : slowest_) counts.push_back(count);
  std::stable_sort(counts.begin(), counts.end(), [](const SlowestCount& a, const SlowestCount& b) {
    return a.num_intervals() > b.num_intervals();
  });
  for (size_t i = 0; i < std::min(counts.size(), kMaxCounts); ++i) *history.add_slowest() = counts[i];
  history.set_num_all_intervals(num_intervals_);
  last_ = history;
  return history;
}

}  // namespace ott
