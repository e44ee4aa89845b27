// Tells which ranks of a job wait, how long, and which of them stand.

#ifndef OTT_QUESTIONS_HANG_JOB_WAITS_H_
#define OTT_QUESTIONS_HANG_JOB_WAITS_H_

#include <vector>

#include "ott/questions/hang/job_state.h"
#include "ott/questions/hang/wait_graph.h"

namespace ott {

// Returns true if the rank left, ended, was stopped or fell silent before its training was over.
bool IsGone(const RankState& rank);

// Keeps a reference to the job.
class JobWaits {
 public:
  // limit: seconds; if times are known, a shorter wait is none.
  JobWaits(const JobState& job, double limit);

  const JobState& job() const { return job_; }
  double limit() const { return limit_; }
  // Ranks that have finished are cut from it.
  WaitGraph& graph() { return graph_; }
  const WaitGraph& graph() const { return graph_; }

  // Returns true if the rank has done nothing for so long that it stands.
  bool Stands(int rank) const;
  // Returns the seconds since the rank entered the operation, which it stands in; 0 if that is not known.
  double Waited(int rank, const JobOperation& operation) const;
  // Returns the index of the operation in which most ranks wait for the rank; -1: none.
  int OperationThatAwaits(int rank) const;

  // Ranks that have waited for long enough, ascending.
  const std::vector<int>& waiters() const { return waiters_; }
  // The longest wait of any rank, in seconds.
  double longest() const { return longest_; }

 private:
  const JobState& job_;
  const double limit_;
  WaitGraph graph_;
  std::vector<int> waiters_;
  double longest_ = 0;
};

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_JOB_WAITS_H_
