// The stopwatch statistics of all ranks, as one table that names the slowest rank.

#ifndef OTT_DIST_STATS_GATHER_H_
#define OTT_DIST_STATS_GATHER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/cluster_stats.pb.h"
#include "ott/dist/communicator.h"
#include "ott/dist/deadline.h"

namespace ott {

// Merges by measurement name. ranks: in any order, some may be missing; several reports of one rank (it was
// restarted) are added up. A measurement that a rank lacks counts for the ranks that have it alone.
// What cannot be used is left out and said in notes.
ClusterStats MergeStats(const std::vector<StopwatchStats>& ranks, int world_size);

// For one gather at the end; StatsGatherer is for gathering again and again. Collective: rank 0 gets the
// statistics of all ranks that answered by the deadline, the others' are named in missing_ranks; other ranks
// get an empty ClusterStats. A rank's report says its own names, so ranks that measure different things
// understand each other. The deadline bounds the call on every rank.
absl::StatusOr<ClusterStats> GatherStats(Communicator& ranks, const StopwatchStats& mine, Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_STATS_GATHER_H_
