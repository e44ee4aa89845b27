#include "ott/questions/slow/merge_stats.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/questions/slow/slow_ranks.h"

namespace ott {
namespace {

void Add(const Statistics& other, Statistics& sum) {
  DurationStatistics merged = DurationStatistics::FromProto(sum).value();
  merged.Merge(DurationStatistics::FromProto(other).value());
  sum = merged.ToProto();
}

void Add(const OwnWorkStats& other, OwnWorkStats& sum) {
  sum.set_waiting_seconds(sum.waiting_seconds() + other.waiting_seconds());
  sum.set_num_watched_iters(sum.num_watched_iters() + other.num_watched_iters());
  sum.set_cpu_seconds(sum.cpu_seconds() + other.cpu_seconds());
  sum.set_taken_seconds(sum.taken_seconds() + other.taken_seconds());
}

void Add(const StopwatchStats& other, StopwatchStats& sum) {
  sum.set_num_measured_iters(sum.num_measured_iters() + other.num_measured_iters());
  Add(other.iteration(), *sum.mutable_iteration());
  std::unordered_map<std::string, Measurement*> by_name;
  for (Measurement& measurement : *sum.mutable_measurements()) by_name[measurement.name()] = &measurement;
  for (const Measurement& theirs : other.measurements()) {
    const auto found = by_name.find(theirs.name());
    if (found == by_name.end()) {
      *sum.add_measurements() = theirs;
      continue;
    }
    Measurement& measurement = *found->second;
    measurement.set_collective(measurement.collective() || theirs.collective());
    measurement.set_outermost(measurement.outermost() || theirs.outermost());
    Add(theirs.per_iteration(), *measurement.mutable_per_iteration());
    Add(theirs.per_interval(), *measurement.mutable_per_interval());
  }
  sum.mutable_one_time()->MergeFrom(other.one_time());
  sum.mutable_misuses()->MergeFrom(other.misuses());
  if (other.has_own_work() && sum.has_own_work()) {
    Add(other.own_work(), *sum.mutable_own_work());
  } else {
    sum.clear_own_work();
  }
  if (other.has_observer_thread_seconds()) {
    sum.set_observer_thread_seconds(sum.observer_thread_seconds() + other.observer_thread_seconds());
  }
}

// The reports of one rank, which was restarted. What says little about the others, such as the rank's own
// time, is that of the report of most iterations.
StopwatchStats Sum(std::vector<const StopwatchStats*> reports) {
  std::stable_sort(reports.begin(), reports.end(), [](const StopwatchStats* a, const StopwatchStats* b) {
    return a->num_measured_iters() > b->num_measured_iters();
  });
  StopwatchStats sum = *reports[0];
  for (size_t i = 1; i < reports.size(); ++i) Add(*reports[i], sum);
  return sum;
}

absl::StatusOr<ClusterSummary> Summarize(const StopwatchStats& stats, const std::string& like_work) {
  internal::RankReport report;
  *report.mutable_stats() = stats;
  report.set_like_work(like_work);
  return ClusterSummary::OfRank(report);
}

}  // namespace

ClusterStats MergeStats(const std::vector<StopwatchStats>& ranks, int world_size,
                        const std::vector<std::string>& like_work) {
  // More than one where a rank was restarted.
  std::map<int, std::vector<const StopwatchStats*>> reports_of_ranks;
  for (const StopwatchStats& stats : ranks) reports_of_ranks[stats.rank()].push_back(&stats);
  ClusterSummary merged;
  for (const auto& [rank, reports] : reports_of_ranks) {
    const auto index = static_cast<size_t>(rank);
    const std::string group = index < like_work.size() ? like_work[index] : "";
    std::vector<const StopwatchStats*> usable;
    for (const StopwatchStats* stats : reports) {
      const std::string who = FormatRank(rank, stats->host()) + ": ";
      if (rank < 0 || rank >= world_size) {
        merged.AddNote(absl::StrCat(who, "left out, the world has ", world_size, " ranks"));
        continue;
      }
      if (const auto summary = Summarize(*stats, group); !summary.ok()) {
        merged.AddNote(absl::StrCat(who, "report left out: ", summary.status().message()));
        continue;
      }
      if (stats->world_size() != 0 && stats->world_size() != world_size) {
        merged.AddNote(
            absl::StrCat(who, "says the world has ", stats->world_size(), " ranks, not ", world_size));
      }
      usable.push_back(stats);
    }
    if (usable.empty()) continue;
    if (usable.size() > 1) {
      merged.AddNote(absl::StrCat("rank ", rank, ": ", usable.size(), " reports added up"));
    }
    if (const auto summary = Summarize(Sum(usable), group); summary.ok()) merged.Merge(*summary);
  }
  ClusterStats stats = JudgeRanks(merged, world_size);
  AddHosts(stats, [&](int rank) { return reports_of_ranks.at(rank).front()->host(); });
  return stats;
}

}  // namespace ott
