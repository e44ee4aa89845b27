#include "ott/dist/stats/rank_groups.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

int64_t Stride(const RankGroups& groups) { return std::max<int64_t>(1, groups.stride()); }

}  // namespace

absl::Status CheckGroups(const RankGroups& groups, const std::string& field, int world_size) {
  if (groups.of_rank_size() > 0) {
    if (groups.of_rank_size() == world_size) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("ott.Config: ", field, ": of_rank has ",
                                                   groups.of_rank_size(), " entries for ", world_size,
                                                   " ranks"));
  }
  const int64_t ranks = groups.size() * Stride(groups);
  if (groups.size() > 0 && groups.stride() >= 0 && world_size % ranks == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("ott.Config: ", field, ": groups of ", groups.size(),
                                                 " ranks, ", Stride(groups), " apart, do not divide ",
                                                 world_size, " ranks"));
}

int64_t GroupOf(const RankGroups& groups, int rank) {
  if (groups.of_rank_size() > 0) return groups.of_rank(rank);
  const int64_t stride = Stride(groups);
  return rank / (groups.size() * stride) * stride + rank % stride;
}

absl::Status CheckGroups(const StopwatchConfig& config, int world_size) {
  if (config.has_like_work()) OTT_RETURN_IF_ERROR(CheckGroups(config.like_work(), "like_work", world_size));
  for (const CollectiveGroups& groups : config.collective_groups()) {
    OTT_RETURN_IF_ERROR(CheckGroups(groups.groups(), "collective_groups", world_size));
  }
  return absl::OkStatus();
}

std::string LikeWork(const StopwatchConfig& config, int rank) {
  return config.has_like_work() ? absl::StrCat("group ", GroupOf(config.like_work(), rank)) : "";
}

std::map<std::string, std::string> GroupsOfCollectives(const StopwatchConfig& config, int rank) {
  std::map<std::string, std::string> groups_of_collectives;
  for (const CollectiveGroups& groups : config.collective_groups()) {
    const std::string group = absl::StrCat("group ", GroupOf(groups.groups(), rank));
    for (const std::string& measurement : groups.measurements()) groups_of_collectives[measurement] = group;
  }
  return groups_of_collectives;
}

}  // namespace ott
