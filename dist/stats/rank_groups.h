// Groups ranks that are compared, and ranks that come to a collective together, as ott.Config says.

#ifndef OTT_DIST_STATS_RANK_GROUPS_H_
#define OTT_DIST_STATS_RANK_GROUPS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/dist/mesh/rank_mesh.h"

namespace ott {

struct RankGroups {
  // By rank: StatsGathererOptions::like_work. Empty strings where all ranks do like work.
  std::vector<std::string> like_work;
  // By rank: StatsGathererOptions::collective_groups. "data/0" is the first group along the axis data; the
  // second entry along it has "data#2/0".
  std::vector<std::map<std::string, std::string>> collective_groups;
};

// Returns INVALID_ARGUMENT for axes that `meshes` does not have.
absl::StatusOr<RankGroups> GroupsOfRanks(const StopwatchConfig& config, const RankMeshes& meshes);

}  // namespace ott

#endif  // OTT_DIST_STATS_RANK_GROUPS_H_
