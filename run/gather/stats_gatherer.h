// Statistics of all ranks again and again, without holding any of them back.

#ifndef OTT_RUN_GATHER_STATS_GATHERER_H_
#define OTT_RUN_GATHER_STATS_GATHERER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/deadline.h"
#include "ott/dist/stats/arrival_summary.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/questions/slow/straggler_tracker.h"
#include "ott/questions/waiting/arrival_tracker.h"

namespace ott {

class NcclCommunicator;

// A group that a rank is part of: {"host", "node7"}, {"pipeline", "3"}.
struct GroupLabel {
  std::string dimension;
  std::string value;
};

struct StatsGathererOptions {
  // The number of ranks that report to one. With at most fan_out + 1 ranks, all report to rank 0 itself.
  // REQUIRES: at least 2
  int fan_out = 32;
  // The groups that this rank is part of besides its host.
  std::vector<GroupLabel> groups;
  // Only ranks for which this is equal are compared with each other: "stage 3" where pipeline stages do
  // unlike work.
  std::string like_work;
  // The group of ranks that come to a collective measurement together, by its name: "tensor/2". All ranks
  // come to a measurement that is not in here.
  std::map<std::string, std::string> collective_groups;
  // A communicator over the same ranks, given on all of them. All then report to rank 0 itself, by NCCL
  // instead of messages, until a gather fails. Null: messages only.
  NcclCommunicator* nccl = nullptr;
};

// Ranks form a tree. Those that no other reports to post what they measured and go on; the others merge what
// they get into their own and post that to the rank above. So a rank receives at most fan_out messages, whose
// size hardly depends on the number of ranks.
//
// Only ranks that others report to ever wait: no longer than the deadline, and not for a rank that did not
// answer the last time and was not heard since. A rank that is stopped or gone is named with those that
// report through it; data that come too late are taken in the next round, and said to be late until then.
//
// Messages carry their names: ranks need not measure the same things.
//
// Every rank calls Gather the same number of times, unless it is gone. Not thread-safe.
//
//   StatsGatherer gatherer(*ranks->Split(0, 0, deadline));
//   ...
//   OTT_ASSIGN_OR_RETURN(const ClusterStats stats, gatherer.Gather(mine, Deadline::After(seconds(1))));
//   if (ranks->rank() == 0) fputs(FormatClusterTable(stats).c_str(), stdout);
class StatsGatherer {
 public:
  // Makes a gatherer. ranks: a communicator of its own, from Split().
  explicit StatsGatherer(std::unique_ptr<Communicator> ranks, StatsGathererOptions options = {});

  // Gathers statistics. mine: since the start of the run. Rank 0 gets the statistics of all that answered;
  // other ranks get an empty ClusterStats. Statistics that no stopwatch gives are INVALID_ARGUMENT on a rank
  // that others report to. The rank that another one reports to leaves them out, with a note. arrivals: since
  // the call before; those of a rank that is late are lost. Also the errors of the communicator.
  absl::StatusOr<ClusterStats> Gather(const StopwatchStats& mine, Deadline deadline,
                                      const RankArrivals& arrivals = {});

  // Gather() in steps, for ranks that must not be held: Prepare() and Merge() compute and use no
  // communicator, so that another thread may do them while the training goes on; Exchange() uses the
  // communicator and hardly computes.
  //
  //   Prepare, Exchange until it returns true, Merge, Post: each once, one after the other.
  absl::Status Prepare(const StopwatchStats& mine, const RankArrivals& arrivals = {});
  // Sends or receives what there is, and waits no longer than `deadline`. Returns whether the exchange is
  // over: every rank that is waited for has answered, or `last` has passed.
  absl::StatusOr<bool> Exchange(Deadline deadline, Deadline last);
  // Returns what Gather() returns.
  absl::StatusOr<ClusterStats> Merge();
  // Sends to the rank above what Merge() merged.
  absl::Status Post();

  // Returns true if this rank has nothing to merge, and is done after Exchange().
  bool is_leaf() const { return children_.empty() && ranks_->rank() != 0; }

  // Returns on rank 0 RankArrivals::iterations of the ranks that answered the latest gather, in any order.
  const std::vector<std::string>& iterations() const { return iterations_; }

  // Returns the bytes that this rank received so far.
  int64_t num_bytes_received() const { return num_bytes_received_; }

 private:
  struct Child {
    int rank = 0;
    // The newest that was received, and its bytes until they are merged.
    int64_t round = 0;
    std::string bytes;
    ClusterSummary total;
    ClusterSummary interval;
    ArrivalSummary arrivals;
    std::vector<std::string> iterations;
    // The report before, of a child that no other reports to.
    std::optional<StopwatchStats> stats;
    // True if it answered since it was last waited for in vain.
    bool answers = true;
  };

  // Exchanges by NCCL; if that fails, the ranks go on by messages.
  absl::StatusOr<bool> ExchangeByNccl(Deadline deadline, Deadline last);
  // Takes the messages that have come, up to that of this round; waits for it.
  absl::Status Receive(Child& child, Deadline deadline);
  absl::Status Accept(Child& child, std::string bytes);
  absl::Status Take(Child& child);
  void MergeChild(Child& child);
  // Makes summaries of one rank's report: since the start, and since `previous`, which it replaces.
  absl::Status Summarize(int rank, internal::RankReport report, std::optional<StopwatchStats>& previous,
                         ClusterSummary& total, ClusterSummary& interval) const;
  // Sets what goes to the rank above: this, and what came since the gather before.
  void SetMessage(internal::StatsMessage message);
  int Parent(int rank) const { return (rank - 1) / options_.fan_out; }
  // Steps from a rank to rank 0.
  int Depth(int rank) const;
  // Returns true if a rank is `ancestor` or reports through it.
  bool IsBelow(int rank, int ancestor) const;
  void NoteSilence(const ClusterSummary& total, ClusterStats& stats) const;
  void AddArrivals(ClusterStats& stats);

  const std::unique_ptr<Communicator> ranks_;
  const StatsGathererOptions options_;
  std::vector<Child> children_;
  int64_t round_ = 0;
  std::optional<StopwatchStats> previous_;  // this rank's
  // The summary of this round.
  ClusterSummary total_;
  ClusterSummary interval_;
  ArrivalSummary interval_arrivals_;
  std::vector<std::string> iterations_;
  int64_t first_iteration_ = 0;
  std::vector<std::string> problems_;  // of messages
  std::string message_;                // to the rank above
  int num_not_taken_ = 0;              // of those, in a row
  int64_t num_bytes_received_ = 0;
  NcclCommunicator* nccl_;  // null once it failed
  // When to give up the gather that was begun; none: nothing was begun.
  std::optional<Deadline> nccl_gathers_until_;
  // Used on rank 0.
  StragglerTracker tracker_;
  ArrivalTracker arrivals_;
  // The mean iteration of the last gather that had iterations.
  ArrivalTracker::MeanIteration recent_iteration_;
};

}  // namespace ott

#endif  // OTT_RUN_GATHER_STATS_GATHERER_H_
