// When the ranks come to collective measurements, and who comes last.

#ifndef OTT_DIST_STATS_ARRIVAL_SUMMARY_H_
#define OTT_DIST_STATS_ARRIVAL_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"
#include "ott/dist/stats/stats_message.pb.h"

namespace ott {

// When one rank came to its collective measurements.
struct RankArrivals {
  // On rank 0's clock.
  std::vector<StopwatchArrivals> measurements;
  // Each time may be so far from the truth.
  int64_t error_bound_nanoseconds = 0;
  // Bytes that go up to rank 0 as they are, such as the iterations of questions/saved.
  std::string iterations;
  // The groups of ranks that come to a measurement together with this one, by its name; all ranks come to one
  // that is not in here.
  std::map<std::string, std::string> groups;
  // Ranks that do like work have the same.
  std::string like_work;
};

// The arrivals of a set of ranks between two gathers, in a size that depends on the intervals and not on the
// ranks. Intervals are matched by name, iteration, and position in the iteration. Merging is associative and
// commutative. A value type.
class ArrivalSummary {
 public:
  static constexpr int64_t kNever = int64_t{1} << 62;

  // One interval on num_ranks ranks. Nanoseconds.
  struct Interval {
    int32_t num_ranks = 1;
    int32_t last_rank = 0;
    int64_t last = 0;
    // The time from the next to last rank's coming to the last one's, and from the first one's. 0 for a
    // single rank.
    int64_t after_next = 0;
    int64_t after_first = 0;
    // The time that the other ranks waited for the last, in sum.
    int64_t waited = 0;
    // The time for which the last waited for a CPU since it came to the collective before.
    int64_t taken = 0;
    // The same inside of that collective, which it may have left late by so much.
    int64_t taken_in_vain = 0;
    // When the first rank left.
    int64_t first_end = kNever;
    // The time for which the last rank, and whichever rank least, was inside of collectives of other groups,
    // or of the observer, since it met all of these ranks before: a rank that waited there was held up
    // itself.
    int64_t held_up = 0;
    int64_t least_held_up = 0;

    void Merge(const Interval& other);
  };
  // The iteration, and which of its intervals.
  using Key = std::pair<int64_t, int64_t>;

  // Name and group.
  using Place = std::pair<std::string, std::string>;

  struct Meeting {
    // The first of the ranks' works in order of their names; and whether there are others.
    std::string like_work;
    bool is_mixed = false;
    std::map<Key, Interval> intervals;
  };

  ArrivalSummary() = default;
  ArrivalSummary(int rank, const RankArrivals& arrivals);

  // Returns INVALID_ARGUMENT for what no summary is.
  static absl::StatusOr<ArrivalSummary> FromProto(const internal::ArrivalSummary& proto);
  internal::ArrivalSummary ToProto() const;

  void Merge(const ArrivalSummary& other);

  const std::map<Place, Meeting>& measurements() const { return measurements_; }
  // Returns how far each time may be from the truth on any rank.
  int64_t error_bound_nanoseconds() const { return error_bound_nanoseconds_; }

 private:
  std::map<Place, Meeting> measurements_;
  int64_t error_bound_nanoseconds_ = 0;
};

}  // namespace ott

#endif  // OTT_DIST_STATS_ARRIVAL_SUMMARY_H_
