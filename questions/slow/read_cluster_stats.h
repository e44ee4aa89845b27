// The statistics of all ranks from what a run left on disk.

#ifndef OTT_QUESTIONS_SLOW_READ_CLUSTER_STATS_H_
#define OTT_QUESTIONS_SLOW_READ_CLUSTER_STATS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/slow/merge_stats.h"

namespace ott::slow {

// Merges RUN/rank_*/stopwatch.pb; arrivals and history are those of RUN/cluster_stats.json. Ranks whose file
// is missing or unreadable are in missing_ranks, and notes say why. problems: may be null; gets what of the
// run is damaged, which notes say, too. NOT_FOUND if run_dir is no run directory or no rank has statistics.
absl::StatusOr<ClusterStats> ReadClusterStats(const std::string& run_dir,
                                              std::vector<std::string>* problems = nullptr);

}  // namespace ott::slow

#endif  // OTT_QUESTIONS_SLOW_READ_CLUSTER_STATS_H_
