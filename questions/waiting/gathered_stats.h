// Reads what rank 0 gathered of all ranks while they trained.

#ifndef OTT_QUESTIONS_WAITING_GATHERED_STATS_H_
#define OTT_QUESTIONS_WAITING_GATHERED_STATS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/stats/cluster_stats.pb.h"

namespace ott {

// Reads RUN/cluster_stats.json. NOT_FOUND if nothing was gathered; DATA_LOSS, with the file's name, if it
// cannot be read. Adds to *problems what of it this version does not know.
absl::StatusOr<ClusterStats> ReadGatheredStats(const std::string& run_dir,
                                               std::vector<std::string>* problems);

}  // namespace ott

#endif  // OTT_QUESTIONS_WAITING_GATHERED_STATS_H_
