// Who comes last to a collective measurement, and how long the others wait for it.

#ifndef OTT_DIST_STATS_ARRIVALS_H_
#define OTT_DIST_STATS_ARRIVALS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/cluster_summary.pb.h"

namespace ott {

// A rank holds the others up where it comes last to more than half of the intervals, and what it comes after
// the next to last is more than the clocks' error and, in a mean iteration, than this share of it.
inline constexpr double kHoldUpIterationShare = 0.01;

// When one rank came to its collective measurements.
struct RankArrivals {
  // On rank 0's clock.
  std::vector<StopwatchArrivals> measurements;
  // How far each time may be from the truth.
  int64_t error_bound_nanoseconds = 0;
  // Bytes that go up to rank 0 as they are, such as the iterations of dist/whatif.
  std::string iterations;
};

// The arrivals of a set of ranks between two gathers, in a size that depends on the intervals and not on the
// ranks. Intervals are matched by name, iteration, and position in the iteration. Merging is associative and
// commutative. A value type.
class ArrivalSummary {
 public:
  ArrivalSummary() = default;
  ArrivalSummary(int rank, const RankArrivals& arrivals);

  // INVALID_ARGUMENT for what no summary is.
  static absl::StatusOr<ArrivalSummary> FromProto(const internal::ArrivalSummary& proto);
  internal::ArrivalSummary ToProto() const;

  void Merge(const ArrivalSummary& other);

 private:
  friend class ArrivalTracker;

  // One interval on num_ranks ranks. Nanoseconds.
  struct Interval {
    int32_t num_ranks = 1;
    int32_t last_rank = 0;
    int64_t last = 0;
    // What the last came after the next to last, and after the first. 0 for a single rank.
    int64_t after_next = 0;
    int64_t after_first = 0;
    // What the other ranks waited for the last, in sum.
    int64_t waited = 0;

    void Merge(const Interval& other);
  };
  // The iteration, and which of its intervals.
  using Key = std::pair<int64_t, int64_t>;

  std::map<std::string, std::map<Key, Interval>> measurements_;
  int64_t error_bound_nanoseconds_ = 0;
};

// Adds up summaries over the run, on rank 0. An interval counts where all ranks came to it that came to any
// of its measurement in the same gather.
//
// Not thread-safe.
class ArrivalTracker {
 public:
  void Add(const ArrivalSummary& summary);

  // In order of name; hosts are left empty. iteration_seconds: of a mean iteration.
  std::vector<ArrivalStats> Finish(double iteration_seconds) const;

 private:
  struct Last {
    int64_t num_intervals = 0;
    double after_next = 0;  // seconds, in sum
    double waited = 0;      // by the mean of the others, in sum
  };
  struct Measurement {
    int64_t num_ranks = 0;
    int64_t num_intervals = 0;
    int64_t num_incomplete = 0;
    int64_t num_iterations = 0;
    int64_t first_iteration = 0;
    int64_t last_iteration = -1;
    double waited = 0;  // by the mean of all ranks, in sum
    double max_wait = 0;
    double error_bound = 0;
    std::map<int, Last> last;  // by rank
  };

  std::map<std::string, Measurement> measurements_;
};

}  // namespace ott

#endif  // OTT_DIST_STATS_ARRIVALS_H_
