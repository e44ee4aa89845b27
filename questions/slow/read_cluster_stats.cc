#include "ott/questions/slow/read_cluster_stats.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/stats/rank_groups.h"
#include "ott/questions/waiting/gathered_stats.h"

namespace ott::slow {
namespace {

absl::StatusOr<StopwatchStats> ReadStopwatchStats(const std::string& path, int rank) {
  OTT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  StopwatchStats stats;
  if (!stats.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(path, ": no StopwatchStats in its ", bytes.size(), " bytes"));
  }
  if (stats.rank() != rank) {
    return absl::DataLossError(
        absl::StrCat(path, ": says it is rank ", stats.rank(), "'s; was it copied here?"));
  }
  return stats;
}

// Adds what only the run itself could know: who came last to collective measurements, and who was slow when.
void AddWhatWasGathered(const std::string& run_dir, ClusterStats* cluster, std::vector<std::string>* notes) {
  absl::StatusOr<ClusterStats> gathered = ReadGatheredStats(run_dir, notes);
  // A run that ends before its first gather has none.
  if (absl::IsNotFound(gathered.status())) return;
  if (!gathered.ok()) {
    notes->push_back(std::string(gathered.status().message()));
    return;
  }
  cluster->mutable_arrivals()->Swap(gathered->mutable_arrivals());
  if (gathered->has_history()) cluster->mutable_history()->Swap(gathered->mutable_history());
}

}  // namespace

absl::StatusOr<ClusterStats> ReadClusterStats(const std::string& run, std::vector<std::string>* problems) {
  const std::string run_dir = LatestAttempt(run);
  OTT_RETURN_IF_ERROR(CheckRunDirectory(run_dir));
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  std::vector<std::string> notes;
  int world_size = ranks.empty() ? 0 : ranks.back() + 1;
  std::vector<std::string> like_work;
  const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir);
  if (info.ok()) {
    world_size = info->world_size();
    const StopwatchConfig& config = info->config().stopwatch();
    const absl::StatusOr<RankMeshes> meshes = RankMeshes::Create(info->config().mesh(), world_size);
    const absl::StatusOr<RankGroups> groups = meshes.ok() ? GroupsOfRanks(config, *meshes) : meshes.status();
    if (groups.ok()) {
      like_work = groups->like_work;
    } else {
      notes.push_back(std::string(groups.status().message()));
    }
  } else {
    notes.push_back(absl::StrCat("world size guessed from what ranks left: ", info.status().message()));
  }

  std::vector<StopwatchStats> stats;
  for (const int rank : ranks) {
    absl::StatusOr<StopwatchStats> of_rank =
        ReadStopwatchStats(RankDirectory(run_dir, rank) + "/stopwatch.pb", rank);
    if (of_rank.ok()) {
      stats.push_back(*std::move(of_rank));
    } else {
      notes.push_back(std::string(of_rank.status().message()));
    }
  }
  if (stats.empty()) {
    return absl::NotFoundError(absl::StrCat(run_dir, ": no rank has statistics", notes.empty() ? "" : ": ",
                                            notes.empty() ? "" : notes.back()));
  }
  // Ranks that left nothing are known to the others.
  for (const StopwatchStats& of_rank : stats) {
    if (!info.ok()) world_size = std::max(world_size, std::min(of_rank.world_size(), kMaxWorldSize));
  }
  // No rank is compared with others if it is not known which do like work.
  for (int rank = 0; like_work.size() < static_cast<size_t>(world_size); ++rank) {
    like_work.push_back(absl::StrCat("rank ", rank));
  }
  ClusterStats cluster = MergeStats(stats, world_size, like_work);
  AddWhatWasGathered(run_dir, &cluster, &notes);
  if (problems != nullptr) *problems = notes;
  if (const std::string starts = DescribeStarts(run); !starts.empty()) notes.push_back(starts);
  for (std::string& note : notes) cluster.add_notes(std::move(note));
  return cluster;
}

}  // namespace ott::slow
