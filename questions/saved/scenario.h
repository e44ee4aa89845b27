// Replays of a job with other own times of some of its operations.

#ifndef OTT_QUESTIONS_SAVED_SCENARIO_H_
#define OTT_QUESTIONS_SAVED_SCENARIO_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "ott/questions/saved/replay_job.h"

namespace ott::saved {

// Holds what all operations take, and what those that are selected take instead.
struct Scenario {
  enum Times {
    kMeasured,
    // The times if all ranks were alike.
    kIdeal,
    // The times that other ranks, which are not selected, take for the same, if those selected are surely
    // slower. Keeps how a rank's times vary. Ideal if all ranks are selected, or ranks do different things.
    kMended,
    // Measured times factor.
    kScaled,
  };

  Times base = kMeasured;
  Times selected = kMended;
  double factor = 1;
  // By rank and kind: [rank * number of kinds + kind].
  std::vector<char> selection;
  // True if kMended leaves alone what may be longer by chance.
  bool only_if_sure = true;
};

// Selects what `selects` says of a rank and a kind, both as indices.
std::vector<char> Select(const ReplayJob& job, absl::FunctionRef<bool(int rank, int kind)> selects);

// Makes replays of scenarios. The job must outlive it.
class ScenarioReplayer {
 public:
  explicit ScenarioReplayer(const ReplayJob& job);

  // Returns seconds by [scenario][step].
  std::vector<std::vector<double>> Replay(const std::vector<Scenario>& scenarios) const;

  // Returns true if ranks do the same at the same places, so that one can be mended by the others.
  bool compares_ranks() const { return !places_.empty(); }

  // Returns MeanExcess() of all kinds for which the rank surely takes longer than others. REQUIRES:
  // compares_ranks()
  double SureExcess(size_t rank) const;

  // Returns the standard error of what a scenario mends, as a share of that; 0 if it mends nothing. How long
  // a mended rank's work would take is known from the others' work, which differs from it by chance.
  double ErrorOfMended(const Scenario& scenario) const;

  // Returns by how much work gets shorter that a scenario mends, in each step, in seconds: it saves no more
  // than that, also where others' waiting is not known.
  std::vector<double> Shortened(const Scenario& scenario) const;

  // Returns how much longer a rank's operations of a kind take in a mean step than those of the median of the
  // other ranks of its stage, or of all if it has none, in seconds.
  double MeanExcess(size_t rank, size_t kind) const { return excess_[rank * job_.kinds.size() + kind]; }

 private:
  // The operations of one place and kind on one rank, the shortest first.
  struct Series {
    int32_t rank = 0;
    std::vector<int32_t> operations;
  };
  struct Place {
    int32_t kind = 0;
    std::vector<Series> by_rank;
  };

  // The parts of an operation's measured and ideal time that its own time is.
  struct Mix {
    double measured = 1;
    double ideal = 0;
  };

  void FindPlaces();
  void FindExcess();
  void AddUpSteps();
  // Returns the ranks with which those that a scenario selects in a kind are compared, by rank.
  std::vector<char> OthersOf(const Scenario& scenario, int kind) const;
  // The mean times of selected and of other ranks in a kind, by batch; empty if either are none.
  struct Compared {
    std::vector<double> selected;
    std::vector<double> others;
    int64_t num_selected = 0;
    int64_t num_others = 0;
  };
  Compared Compare(const Scenario& scenario, int kind) const;
  // Returns true if the ranks that a scenario selects in a kind take longer for it than the others of their
  // stages, or than all others if it selects whole stages. It is so sure that of all sets of ranks and all
  // kinds hardly ever one looks so by chance.
  bool IsSurelySlow(const Scenario& scenario, int kind) const;
  // Returns true if one rank is so seldom, but again and again.
  bool IsRarelySlow(const Scenario& scenario, int kind) const;
  // Returns true if no other rank ever has operations of the kind, though others are of the same stages.
  bool IsAlone(const Scenario& scenario, int kind) const;
  // Returns true if ranks have operations of the kind in most steps, or again and again. One event is no
  // habit.
  bool IsHabit(int kind) const;
  void MendPlace(const Scenario& scenario, const Place& place, std::vector<float>& mended) const;
  // Finds those of the ranks that are not selected that are like most of them.
  std::vector<const Series*> FindHealthy(const Place& place,
                                         absl::FunctionRef<bool(const Series&)> is_selected) const;
  // Returns own times of the operations that a scenario mends, by operation; others are NaN. Empty if it
  // mends none.
  std::vector<float> Mend(const Scenario& scenario) const;

  // Returns the mix of operations that Mend() does not mend.
  Mix MixOf(const Scenario& scenario, size_t rank_and_kind) const;

  const ReplayJob& job_;
  // The places of operations that have one, of the first half of the run and of the second: a rank that is
  // slow in one is no example for others in the other.
  std::vector<Place> places_;
  std::vector<double> excess_;
  // [rank * number of kinds + kind]: in seconds, of places; and whether the rank has such operations.
  std::vector<std::vector<double>> batches_;
  std::vector<std::vector<float>> steps_;
  std::vector<char> has_kind_;
  // How many steps each batch has.
  std::vector<double> steps_of_batch_;
};

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_SCENARIO_H_
