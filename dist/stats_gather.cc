#include "ott/dist/stats_gather.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/cluster_summary.h"

namespace ott {

ClusterStats MergeStats(const std::vector<StopwatchStats>& ranks, int world_size) {
  ClusterSummary merged;
  std::map<int, RankReport> by_rank;
  std::map<int, int> num_reports;
  for (const StopwatchStats& stats : ranks) {
    const std::string who = absl::StrCat("rank ", stats.rank(), " (", stats.host(), "): ");
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
  return merged.Finish(world_size);
}

absl::StatusOr<ClusterStats> GatherStats(Communicator& ranks, const StopwatchStats& mine, Deadline deadline) {
  OTT_ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> reports,
                       ranks.GatherAvailable(0, mine.SerializeAsString(), deadline));
  if (ranks.rank() != 0) return ClusterStats();

  std::vector<StopwatchStats> parsed;
  std::vector<std::string> problems;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const absl::StatusOr<std::string>& bytes = reports[rank];
    StopwatchStats report;
    if (!bytes.ok()) {
      if (!absl::IsDeadlineExceeded(bytes.status()))
        problems.push_back(std::string(bytes.status().message()));
    } else if (!report.ParseFromString(*bytes)) {
      problems.push_back(
          absl::StrCat("rank ", rank, ": ", bytes->size(), " bytes that are no StopwatchStats"));
    } else {
      report.set_rank(rank);
      report.set_world_size(ranks.size());
      report.set_host(ranks.host(rank));
      parsed.push_back(std::move(report));
    }
  }
  ClusterStats stats = MergeStats(parsed, ranks.size());
  for (const std::string& problem : problems) stats.add_notes(problem);
  return stats;
}

}  // namespace ott
