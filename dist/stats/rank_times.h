// The own times of ranks that do like work, and whether one of them takes longer than the others.

#ifndef OTT_DIST_STATS_RANK_TIMES_H_
#define OTT_DIST_STATS_RANK_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/dist/stats/rank_times.pb.h"

namespace ott {

// Keeps the times of up to kMaxSample ranks; of more ranks, a sample chosen by a hash of their numbers, and
// those that take longest, so that its size does not depend on the number of ranks. Merging is associative
// and commutative. A value type.
class RankTimes {
 public:
  static constexpr size_t kMaxSample = 8;
  static constexpr size_t kMaxLongest = 2;

  struct Entry {
    int rank = 0;
    ProcessTime time;
    // The plain mean of all iterations, in seconds.
    double mean_seconds = 0;
    // The iterations that they are of.
    int64_t first_iteration = 0;
    int64_t num_iterations = 0;
    // The time with that in which others had the CPU; nullopt if they never had it.
    std::optional<SteadyTime> with_taken;

    // Returns the iteration at this share of them.
    int64_t IterationAt(double share) const;
  };

  RankTimes() = default;
  explicit RankTimes(const Entry& entry);

  // Returns INVALID_ARGUMENT for what are no times.
  static absl::StatusOr<RankTimes> FromProto(const internal::RankTimes& proto);
  internal::RankTimes ToProto() const;

  void Merge(const RankTimes& other);

  int64_t num_ranks() const { return num_ranks_; }

  struct Suspect {
    Entry entry;
    Excess excess;
    // The same of the times with what others took of the CPU: that may have made nothing longer, as where a
    // rank slept anyway.
    Excess with_taken;
    // The same between plain means, in seconds. It is another one if the excess is not in all iterations.
    double mean_excess = 0;
  };

  // Returns the ranks that may be slow: all, of more than kMaxSample the longest; none for fewer than two.
  std::vector<Suspect> Suspects() const;
  // Returns that of one rank; nullopt if it is not among those that are kept, or alone.
  std::optional<Suspect> Of(int rank) const;
  // Returns what the rank takes longer than the others in the mean of all iterations; all of it if no other
  // does this. nullopt if Of() is.
  std::optional<double> ExcessOf(int rank) const;
  // Returns what a rank that is not among those that are kept takes longer at most, in the same sense.
  double MostExcessOfOthers() const;

 private:
  void Bound();
  Suspect MakeSuspect(const Entry& entry) const;

  int64_t num_ranks_ = 0;
  // In an order that has nothing to do with the times.
  std::vector<Entry> sample_;
  // Longest first. Of more than kMaxSample ranks.
  std::vector<Entry> longest_;
};

}  // namespace ott

#endif  // OTT_DIST_STATS_RANK_TIMES_H_
