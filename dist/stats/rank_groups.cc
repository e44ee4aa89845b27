#include "ott/dist/stats/rank_groups.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"

namespace ott {

absl::StatusOr<RankGroups> GroupsOfRanks(const StopwatchConfig& config, const RankMeshes& meshes) {
  RankGroups groups;
  groups.collective_groups.resize(meshes.num_ranks());
  OTT_ASSIGN_OR_RETURN(const RanksAlong work,
                       meshes.Along(config.work_differs_along(), "work_differs_along"));
  const std::string axes = absl::StrJoin(config.work_differs_along(), ", ");
  for (const int position : work.positions) {
    groups.like_work.push_back(axes.empty() ? "" : absl::StrCat(axes, " ", position));
  }
  for (const CollectiveGroups& collective : config.collective_groups()) {
    OTT_ASSIGN_OR_RETURN(const RanksAlong along, meshes.Along(collective.along(), "collective_groups"));
    for (int rank = 0; rank < meshes.num_ranks(); ++rank) {
      for (const std::string& measurement : collective.measurements()) {
        groups.collective_groups[rank][measurement] = absl::StrCat("group ", along.groups[rank]);
      }
    }
  }
  return groups;
}

}  // namespace ott
