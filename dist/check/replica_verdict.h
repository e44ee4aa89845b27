// Rank 0's part of a check of replicas: it asks the others, and comes to the verdict.

#ifndef OTT_DIST_CHECK_REPLICA_VERDICT_H_
#define OTT_DIST_CHECK_REPLICA_VERDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/check/replica_check.pb.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/rank_list.h"
#include "replica_tensors.h"

namespace ott::internal {

// Tags of what ranks post.
inline constexpr int kToRoot = 0;
inline constexpr int kFromRoot = 1;

// What the ranks of a check are called.
class Members {
 public:
  Members(const Communicator& ranks, const std::vector<int>& names) : ranks_(ranks), names_(names) {}

  int Name(int rank) const { return names_.empty() ? rank : names_[rank]; }
  std::string Describe(int rank) const { return FormatRank(Name(rank), ranks_.host(rank)); }
  std::string DescribeAll(std::vector<int> ranks) const {
    if (ranks.size() == 1) return Describe(ranks.front());
    for (int& rank : ranks) rank = Name(rank);
    return FormatRanks(ranks);
  }
  std::string TooLate(const std::vector<int>& ranks, Deadline deadline) const {
    return absl::StrCat("nothing from ", DescribeAll(ranks), " within ", deadline.Seconds(), " s");
  }

 private:
  const Communicator& ranks_;
  const std::vector<int>& names_;
};

// mine: rank 0's own announcement. check: the number of this check, in each message. Who has not announced
// anything by `announced` is missing; the rest is done by `decided`.
CrossCheckVerdict DecideOnReplicas(Communicator& ranks, const ReplicaCheckOptions& options,
                                   const ReplicaTensors& tensors, const ReplicaAnnouncement& mine,
                                   uint64_t check, Deadline announced, Deadline decided);

// The verdict on any rank where it is known already that all are equal.
CrossCheckVerdict AllReplicasEqual(const ReplicaCheckOptions& options, const ReplicaTensors& tensors,
                                   const ReplicaAnnouncement& mine);

}  // namespace ott::internal

#endif  // OTT_DIST_CHECK_REPLICA_VERDICT_H_
