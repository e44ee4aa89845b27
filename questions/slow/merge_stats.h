// The stopwatch statistics of all ranks, as one table that names the slowest rank.

#ifndef OTT_QUESTIONS_SLOW_MERGE_STATS_H_
#define OTT_QUESTIONS_SLOW_MERGE_STATS_H_

#include <string>
#include <vector>

#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/stats/cluster_stats.pb.h"

namespace ott {

// Merges by measurement name. ranks: in any order, some may be missing; several reports of one rank (it was
// restarted) are added up. A measurement that some ranks lack is summed up over the others. What cannot be
// used is left out and said in notes. like_work: of each rank what StatsGathererOptions::like_work is; empty:
// all do like work.
ClusterStats MergeStats(const std::vector<StopwatchStats>& ranks, int world_size,
                        const std::vector<std::string>& like_work = {});

}  // namespace ott

#endif  // OTT_QUESTIONS_SLOW_MERGE_STATS_H_
