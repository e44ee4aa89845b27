#include "ott/dist/stats/rank_groups.h"

#include <map>
#include <set>
#include <string>

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
  // Entries along the same axes have groups of their own.
  std::map<std::string, int> num_entries;
  std::set<std::string> measurements;
  for (const CollectiveGroups& collective : config.collective_groups()) {
    OTT_ASSIGN_OR_RETURN(const RanksAlong along, meshes.Along(collective.along(), "collective_groups"));
    for (const std::string& measurement : collective.measurements()) {
      if (measurements.insert(measurement).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("collective_groups: \"", measurement,
                                                     "\" is there twice, and has one group of ranks"));
    }
    const std::string along_axes = absl::StrJoin(collective.along(), "+");
    const int entry = ++num_entries[along_axes];
    const std::string entry_name = entry == 1 ? along_axes : absl::StrCat(along_axes, "#", entry);
    for (int rank = 0; rank < meshes.num_ranks(); ++rank) {
      for (const std::string& measurement : collective.measurements()) {
        groups.collective_groups[rank][measurement] = absl::StrCat(entry_name, "/", along.groups[rank]);
      }
    }
  }
  return groups;
}

}  // namespace ott
