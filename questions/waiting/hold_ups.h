// Whom the others wait for, step after step, and whether so few steps can tell.

#ifndef OTT_QUESTIONS_WAITING_HOLD_UPS_H_
#define OTT_QUESTIONS_WAITING_HOLD_UPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ott/core/statistics/policy.h"

namespace ott::waiting {

// A rank that the others wait for at collectives of one name and group.
struct TracedHoldUp {
  int rank = -1;
  std::string collective;
  std::string group;  // as people call it; empty: not known
  double seconds_per_step = 0;
  double share_of_step = 0;
};

// Says what is compared: collectives of one name and group.
struct HoldUpOptions {
  // Seconds of a step, or of the whole trace where it has none.
  double step_seconds = 0;
  // Seconds of a step that are not spent in collectives. Ranks that are alike differ by a share of it.
  double work_seconds = 0;
  // From the trace's first activity to its last.
  double watched_seconds = 0;
  // Each time of a collective may be off by so much.
  double clock_error_seconds = 0;
  bool has_steps = false;
};

struct TracedHoldUps {
  std::vector<TracedHoldUp> found;  // by cost, most first; one for each kind of collective at most
  int64_t most_intervals = 0;       // of one kind of collective
  int64_t most_steps = 0;           // that have intervals of one kind
  // The share that a rank must cost in a step to be found in four of five traces, as a share of the step, at
  // whichever kind of collective it is late, or more than any is late there; infinite where none has enough
  // steps.
  double detectable_share = 0;

  bool CanTell() const { return !found.empty() || detectable_share <= kDetectableShare; }
};

// A rank is to blame for what the last rank comes after the next to last, less what the other ranks cost in
// the same way: the rule of arrival_tracker.h. Collectives that do not wait for each other overlap: what a
// rank comes late by at several of them at once counts once. A step is one sample, whatever it has of
// collectives, since what a rank has to do in it is drawn once. To what samples vary by is added what ranks
// that are alike are expected to differ by: of so many of them the last one comes after the next to last. Not
// thread-safe.
class HoldUpFinder {
 public:
  struct KindName {
    std::string collective;
    std::string group;
    std::string group_key;  // tells groups of one name apart
    bool operator<(const KindName& other) const {
      return std::tie(collective, group, group_key) <
             std::tie(other.collective, other.group, other.group_key);
    }
  };

  // Adds one collective that all its ranks have: the rank that came last, when the next to last came and when
  // the last one, in nanoseconds. In the order of time.
  void Add(const KindName& kind, int64_t step, const std::vector<int>& ranks, int last_rank,
           int64_t next_to_last, int64_t last);

  TracedHoldUps Find(const HoldUpOptions& options) const;

 private:
  struct Interval {
    int64_t step;
    int last_rank;
    double after_next;  // seconds, without those of collectives before
  };
  struct Kind {
    std::vector<int> ranks;
    std::map<int, int64_t> last_came;  // by rank: when it was the last
    int64_t num_apart = 0;             // intervals that overlap with none before of their last rank
    std::vector<Interval> intervals;
  };

  static std::map<int64_t, std::vector<const Interval*>> Steps(const Kind& kind, bool has_steps);

  std::map<KindName, Kind> kinds_;
};

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_HOLD_UPS_H_
