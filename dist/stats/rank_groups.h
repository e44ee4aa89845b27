// Which ranks are compared, and which come to a collective together, as ott.Config says.

#ifndef OTT_DIST_STATS_RANK_GROUPS_H_
#define OTT_DIST_STATS_RANK_GROUPS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "ott/core/base/config.pb.h"

namespace ott {

// INVALID_ARGUMENT for groups that do not divide the ranks. field: what the message calls them.
absl::Status CheckGroups(const StopwatchConfig& config, int world_size);
absl::Status CheckGroups(const RankGroups& groups, const std::string& field, int world_size);

// The number of a rank's group. REQUIRES: CheckGroups() passes.
int64_t GroupOf(const RankGroups& groups, int rank);

// StatsGathererOptions::like_work of a rank. REQUIRES: CheckGroups() passes.
std::string LikeWork(const StopwatchConfig& config, int rank);

// StatsGathererOptions::collective_groups of a rank. REQUIRES: CheckGroups() passes.
std::map<std::string, std::string> GroupsOfCollectives(const StopwatchConfig& config, int rank);

}  // namespace ott

#endif  // OTT_DIST_STATS_RANK_GROUPS_H_
