// Tells whether the same rank is slow, interval after interval.

#ifndef OTT_QUESTIONS_SLOW_STRAGGLER_TRACKER_H_
#define OTT_QUESTIONS_SLOW_STRAGGLER_TRACKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/cluster_summary.h"

namespace ott {

// Not thread-safe.
class StragglerTracker {
 public:
  // interval: what the ranks did since the last call; if that is no iteration, returns what that call did.
  // first_iteration: of the interval.
  StragglerHistory Add(const ClusterSummary& interval, int64_t first_iteration);

 private:
  std::optional<int> straggler_;
  int64_t num_in_a_row_ = 0;
  int64_t since_iteration_ = 0;
  int64_t num_intervals_ = 0;
  std::map<int, SlowestCount> slowest_;  // by rank
  StragglerHistory last_;
};

}  // namespace ott

#endif  // OTT_QUESTIONS_SLOW_STRAGGLER_TRACKER_H_
