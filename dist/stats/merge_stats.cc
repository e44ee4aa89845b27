#include "ott/dist/stats/merge_stats.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/stats/cluster_summary.h"

namespace ott {

ClusterStats MergeStats(const std::vector<StopwatchStats>& ranks, int world_size,
                        const std::vector<std::string>& like_work) {
  ClusterSummary merged;
  std::map<int, RankReport> by_rank;
  std::map<int, int> num_reports;
  for (const StopwatchStats& stats : ranks) {
    const std::string who = FormatRank(stats.rank(), stats.host()) + ": ";
    if (stats.rank() < 0 || stats.rank() >= world_size) {
      merged.AddNote(absl::StrCat(who, "left out, the world has ", world_size, " ranks"));
      continue;
    }
    absl::StatusOr<RankReport> report = RankReport::FromStats(stats);
    if (!report.ok()) {
      merged.AddNote(absl::StrCat(who, "report left out: ", report.status().message()));
      continue;
    }
    if (stats.world_size() != 0 && stats.world_size() != world_size) {
      merged.AddNote(
          absl::StrCat(who, "says the world has ", stats.world_size(), " ranks, not ", world_size));
    }
    ++num_reports[stats.rank()];
    const auto [earlier, is_first] = by_rank.try_emplace(stats.rank());
    if (is_first) {
      report->groups.push_back({"host", report->host});
      const auto rank = static_cast<size_t>(report->rank);
      if (rank < like_work.size()) report->like_work = like_work[rank];
      earlier->second = *std::move(report);
    } else {
      earlier->second.Add(*report);
    }
  }
  for (const auto& [rank, report] : by_rank) {
    if (num_reports[rank] > 1)
      merged.AddNote(absl::StrCat("rank ", rank, ": ", num_reports[rank], " reports added up"));
    merged.Merge(ClusterSummary(report));
  }
  ClusterStats stats = merged.Finish(world_size);
  AddHosts(stats, [&](int rank) { return by_rank.at(rank).host; });
  return stats;
}

}  // namespace ott
