// Rank 0's part of a check of replicas: it asks the others, and comes to the verdict.

#ifndef OTT_DIST_CHECK_REPLICA_VERDICT_H_
#define OTT_DIST_CHECK_REPLICA_VERDICT_H_

#include <cstdint>

#include "dist/check/replica_tensors.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/check/replica_check.pb.h"
#include "ott/dist/comm/communicator.h"

namespace ott::internal {

// mine: rank 0's own announcement. check: the number of this check, in each message. Who has not announced
// anything by `announced` is missing; the rest is done by `decided`.
CrossCheckVerdict DecideOnReplicas(Communicator& ranks, const ReplicaCheckOptions& options,
                                   const ReplicaTensors& tensors, const ReplicaAnnouncement& mine,
                                   uint64_t check, Deadline announced, Deadline decided);

// Returns the verdict on any rank where it is known already that all are equal.
CrossCheckVerdict AllReplicasEqual(const ReplicaCheckOptions& options, const ReplicaTensors& tensors,
                                   const ReplicaAnnouncement& mine);

}  // namespace ott::internal

#endif  // OTT_DIST_CHECK_REPLICA_VERDICT_H_
