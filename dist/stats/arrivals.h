// Who comes last to a collective measurement, and how long the others wait for it.

#ifndef OTT_DIST_STATS_ARRIVALS_H_
#define OTT_DIST_STATS_ARRIVALS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/stopwatch/own_time.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/stats_message.pb.h"

namespace ott {

// How often a gather names a rank although all ranks are alike, over all ranks and collective measurements.
inline constexpr double kHoldUpError = 0.0025;

// A rank is named only if the others wait for it longer than the clocks' error, and longer than this share of
// a mean iteration.
inline constexpr double kHoldUpIterationShare = 0.02;

// Ranks leave a collective one after the other, always in the same order: what that is expected to do, in
// seconds, as a standard deviation.
inline constexpr double kExpectedLateness = 2e-6;

// A single pause gets a line if it is at least so many seconds, and so many mean iterations, long.
inline constexpr double kPauseSeconds = 1;
inline constexpr double kPauseIterations = 10;

// When one rank came to its collective measurements.
struct RankArrivals {
  // On rank 0's clock.
  std::vector<StopwatchArrivals> measurements;
  // How far each time may be from the truth.
  int64_t error_bound_nanoseconds = 0;
  // Bytes that go up to rank 0 as they are, such as the iterations of questions/saved.
  std::string iterations;
  // Which ranks come to a measurement together with this one, by its name; where it is not in here, all do.
  std::map<std::string, std::string> groups;
  // Ranks that do like work have the same.
  std::string like_work;
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

  static constexpr int64_t kNever = int64_t{1} << 62;

  // One interval on num_ranks ranks. Nanoseconds.
  struct Interval {
    int32_t num_ranks = 1;
    int32_t last_rank = 0;
    int64_t last = 0;
    // How much later the last rank came than the next to last, and than the first. 0 for a single rank.
    int64_t after_next = 0;
    int64_t after_first = 0;
    // The time that the other ranks waited for the last, in sum.
    int64_t waited = 0;
    // How long the last waited for a CPU since it came to the collective before.
    int64_t taken = 0;
    // The same inside of that collective, which it may have left late by so much.
    int64_t taken_in_vain = 0;
    // When the first rank left.
    int64_t first_end = kNever;
    // How long the last, and whichever rank least, was inside of collectives of other groups since it met all
    // of these ranks before: who waited there was held up itself.
    int64_t held_up = 0;
    int64_t least_held_up = 0;

    void Merge(const Interval& other);
  };
  // The iteration, and which of its intervals.
  using Key = std::pair<int64_t, int64_t>;

  // Name and group.
  using Place = std::pair<std::string, std::string>;

  struct Meeting {
    // Of the ranks' works, the first in order of their names; and whether there are others.
    std::string like_work;
    bool is_mixed = false;
    std::map<Key, Interval> intervals;
  };

  std::map<Place, Meeting> measurements_;
  int64_t error_bound_nanoseconds_ = 0;
};

// Adds up summaries over the run, on rank 0. An interval counts if all ranks came to it that came to any
// interval of its measurement in the same gather.
//
// How much a rank holds the others up is how much later than the next to last it comes, less the time for
// which it had no CPU or was held up itself, and less what the other ranks cost in the same way, by the mean
// of them. So it is nothing for ranks that are alike, however few they are and whatever the noise. Where a
// rank leaves before the last one comes, not all wait for it, and that interval costs nothing. Where ranks
// that do unlike work meet, as a send and its receive, one waits for the other by design.
//
// Not thread-safe.
class ArrivalTracker {
 public:
  void Add(const ArrivalSummary& summary);

  // The CPU time that ranks had while they worked in an iteration: over the run, and since the gather
  // before.
  struct CpuOfWork {
    CpuShare all;
    CpuShare recent;
  };

  // In order of name; hosts are left empty. iteration_seconds: of a mean iteration.
  std::vector<ArrivalStats> Finish(double iteration_seconds, const CpuOfWork& cpu) const;

 private:
  struct Last {
    int64_t num_intervals = 0;
    double after_next = 0;  // seconds, in sum
    double waited = 0;      // by the mean of the others, in sum
    // Of each interval: what all would have been spared without the rank, less its part of what they would
    // have been spared without another.
    OwnTimeRecorder cost;
  };
  // An interval in which all waited long for one rank.
  struct Late {
    double seconds = 0;
    int64_t iteration = 0;
    int rank = 0;
  };
  struct Measurement {
    int64_t num_ranks = 0;
    int64_t num_intervals = 0;
    int64_t num_incomplete = 0;
    // In which somebody left before the last came.
    int64_t num_left = 0;
    int64_t num_iterations = 0;
    // From one of them to the next in the same gather, in sum, and how many such steps there are.
    int64_t stepped = 0;
    int64_t num_steps = 0;
    int64_t first_iteration = 0;
    int64_t last_iteration = -1;
    bool is_mixed = false;
    double waited = 0;  // by the mean of all ranks, in sum
    double max_wait = 0;
    double error_bound = 0;    // of its intervals, in sum
    std::map<int, Last> last;  // by rank; those that are seldom last give way to others
    OwnTimeRecorder cost_of_never_last;
    std::vector<Late> latest;  // the longest

    // Of the run, those without the measurement included.
    double NumIterations() const {
      const double step = num_steps > 0 ? static_cast<double>(stepped) / static_cast<double>(num_steps) : 1.0;
      return step * static_cast<double>(num_iterations);
    }
  };

  static void AddInterval(int64_t iteration, const ArrivalSummary::Interval& interval, int64_t error_bound,
                          Measurement& measurement);
  static Last& FindLast(int rank, Measurement& measurement);
  static void FinishLast(const Measurement& measurement, ArrivalStats& stats);
  void FindHoldUp(const Measurement& measurement, double iteration_seconds, bool recent, const CpuShare& cpu,
                  ArrivalStats& stats) const;
  static void FindHiccups(const Measurement& measurement, double iteration_seconds, ArrivalStats& stats);

  std::map<ArrivalSummary::Place, Measurement> measurements_;
};

}  // namespace ott

#endif  // OTT_DIST_STATS_ARRIVALS_H_
