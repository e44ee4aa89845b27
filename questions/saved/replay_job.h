// Holds what a what-if analysis works on, wherever it comes from: operations of ranks with their times.

#ifndef OTT_QUESTIONS_SAVED_REPLAY_JOB_H_
#define OTT_QUESTIONS_SAVED_REPLAY_JOB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/questions/saved/dependency_graph.h"

namespace ott::saved {

struct ReplayJob {
  struct Rank {
    int rank = 0;
    // -1: the job has none.
    int stage = -1;
    int replica = -1;
    // Empty: unknown.
    std::string host;
  };
  // A kind of operations that are alike.
  struct Kind {
    std::string name;
    // Under which it is reported; kinds may share it.
    std::string operation;
    bool communicates = false;
    // Others work inside of it: it may take long since these do, whatever it would take by itself.
    bool holds_work = false;
  };
  struct Operation {
    int32_t rank = 0;  // index into `ranks`
    int32_t kind = 0;
    // Operations that do the same work on different ranks and in different steps have one number; -1: the
    // kind says it all.
    int32_t place = -1;
    // Measured from the beginning of the step, in seconds.
    double start = 0;
    double end = 0;
    // Without waiting for others.
    double own = 0;
    // If all ranks were alike.
    double ideal = 0;
    // It started so much later than it could.
    double delay = 0;
  };
  struct Step {
    int64_t number = 0;
    double measured_seconds = 0;
    // Iterations that it consists of.
    int num_iterations = 1;
    // Steps of one batch followed each other, and what disturbed one may have disturbed the next.
    int64_t batch = 0;
  };

  DependencyGraph graph;
  std::vector<Rank> ranks;
  std::vector<Kind> kinds;
  std::vector<Operation> operations;  // of the graph
  std::vector<Step> steps;            // of the graph
  // The part of the graph that the steps' measured seconds are of: the one that took longest.
  size_t longest_part = 0;
  // Says what could not be used, and why.
  std::vector<std::string> notes;
  // Part of the job is missing, so that an answer is none for all of it.
  bool incomplete = false;
  // True if any two ranks are known to wait for each other.
  bool knows_who_waits = true;
  // True if collectives seem to run beside the work, so that who waits for whom in them is not known.
  bool may_overlap = false;
  // The measurement that ranks come to different numbers of times, so that it is not known whose coming
  // belongs together; or empty.
  std::string unmatched;
  // Seconds of a step that the work of ranks that are alike may differ by, as a standard deviation, and what
  // one slowdown of a CPU and others that have it make; 0: not known.
  double work_spread = 0;
  double work_slowdown = 0;
  // Seconds of a step for which others had one rank's CPU longer than another's.
  double taken_difference = 0;
  // Seconds of a step for which one rank was longer than another in measurements that count as waiting, since
  // they ran inside of collective ones.
  double inside_difference = 0;
  // For what share of a rank's work others had its CPU; of the rank of which they had most.
  double taken_share = 0;
  // The word for a step.
  std::string step_word = "step";

  std::string NameOf(int32_t operation) const {
    const Operation& what = operations[operation];
    return absl::StrCat(kinds[what.kind].name, " on rank ", ranks[what.rank].rank);
  }
};

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_REPLAY_JOB_H_
