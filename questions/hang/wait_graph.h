// Finds who waits for whom, and where the waits end.

#ifndef OTT_QUESTIONS_HANG_WAIT_GRAPH_H_
#define OTT_QUESTIONS_HANG_WAIT_GRAPH_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "ott/questions/hang/job_state.h"

namespace ott {

// An operation, and the ranks that stand in it.
struct StandingOperation {
  JobOperation operation;  // of the first of them
  std::vector<int> standing;
  // True if a member, or the peer, has not entered it as far as is known.
  bool awaits = false;
  // A member that has not even entered this one is of another group.
  int64_t completed_before = 0;
};

// The graph of who waits for whom. Memory and time grow with the number of ranks times the groups in which
// some stand, not with the number of pairs of ranks. Keeps a reference to the job.
class WaitGraph {
 public:
  explicit WaitGraph(const JobState& job);

  const std::vector<StandingOperation>& operations() const { return operations_; }
  // Indices into operations() of those that the rank stands in.
  const std::vector<int>& OperationsOf(int rank) const { return next_[rank]; }
  // Returns true if those that stand in the operation wait for the rank.
  bool Awaits(int operation, int rank) const;
  // Returns true if the rank waits for another, and was not cut.
  bool Waits(int rank) const;

  // Lets the rank wait for nobody from here on, whatever it stands in.
  void Cut(int rank) { cut_[rank] = true; }

  // Returns the ends of the waits that begin with `from`: sets of one rank that waits for nobody, or of
  // several that wait for each other. Each set is ascending.
  std::vector<std::vector<int>> Ends(const std::vector<int>& from) const;

  // A shortest cycle among ranks that wait for each other: each waits in its operation for the next, the last
  // for the first. REQUIRES: `ranks` is a set of several of Ends().
  struct Step {
    int rank;
    int operation;
  };
  std::vector<Step> Cycle(const std::vector<int>& ranks) const;

 private:
  // Collective operations by group and sequence number; others by rank, group and peer as well.
  using Key = std::tuple<int32_t, int64_t, int, int, int>;

  void AddStanding(int rank, const JobOperation& operation, std::map<Key, int>* index);
  void AddAwaited();
  void AddAwaitedOfGroup(int32_t group, const std::vector<int>& operations);
  int FirstOperationNode() const { return static_cast<int>(job_.ranks.size()); }

  const JobState& job_;
  std::vector<StandingOperation> operations_;
  std::vector<bool> cut_;
  // Lists for each node the nodes that it leads to. Ranks come first and lead to indices of operations; then
  // the operations, which lead to nodes. Last come nodes that stand for the first k members of a group, in
  // the order of what they entered, so that operations which wait for many ranks share them.
  std::vector<std::vector<int>> next_;
};

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_WAIT_GRAPH_H_
