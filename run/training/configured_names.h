// Names in a configuration that no measurement has.

#ifndef OTT_RUN_TRAINING_CONFIGURED_NAMES_H_
#define OTT_RUN_TRAINING_CONFIGURED_NAMES_H_

#include <string>
#include <vector>

#include "ott/core/base/config.pb.h"
#include "ott/dist/stats/cluster_stats.pb.h"

namespace ott {

// A note for each measurement that the configuration names and that ran on no rank, with the name that was
// probably meant. Without the note, time in a misspelt collective measurement would count as work, and nobody
// would see why.
//
//   collective_measurements: "alreduce" ran on no rank; "allreduce" did
std::vector<std::string> FindNamesThatNeverRan(const StopwatchConfig& config, const ClusterStats& stats);

}  // namespace ott

#endif  // OTT_RUN_TRAINING_CONFIGURED_NAMES_H_
