// Finds the slow ranks in what a ClusterSummary knows.

#ifndef OTT_QUESTIONS_SLOW_SLOW_RANKS_H_
#define OTT_QUESTIONS_SLOW_SLOW_RANKS_H_

#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/cluster_summary.h"

namespace ott {

// Returns the summary as one table with its verdicts: the straggler, or what would have shown, and slow
// measurements. error_share: of the errors of policy.h, which are meant for the one verdict of a run.
ClusterStats JudgeRanks(const ClusterSummary& summary, int world_size, double error_share = 1);

// Says in the verdicts where their ranks run.
template <typename HostOf>
void AddHosts(ClusterStats& stats, const HostOf& host_of) {
  const auto add = [&](auto& verdict) { verdict.set_host(host_of(verdict.rank())); };
  if (stats.has_straggler()) add(*stats.mutable_straggler());
  if (stats.history().has_straggler()) add(*stats.mutable_history()->mutable_straggler());
  for (SlowMeasurement& slow : *stats.mutable_slow_measurements()) add(slow);
  if (!stats.has_cpu_taken()) return;
  for (TakenFromRank& taken : *stats.mutable_cpu_taken()->mutable_ranks()) add(taken);
}

}  // namespace ott

#endif  // OTT_QUESTIONS_SLOW_SLOW_RANKS_H_
