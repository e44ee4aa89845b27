// ClusterStats for people and for programs.

#ifndef OTT_QUESTIONS_SLOW_CLUSTER_TABLE_H_
#define OTT_QUESTIONS_SLOW_CLUSTER_TABLE_H_

#include <string>
#include <vector>

#include "ott/dist/stats/cluster_stats.pb.h"

namespace ott {

// Returns a line a measurement, a line a collective to which ranks come, and what is missing. Ends with a
// newline.
std::string FormatClusterTable(const ClusterStats& stats);

// Returns the lines that say who is slow, by work; or that none stands out.
std::vector<std::string> SlowRankLines(const ClusterStats& stats);

// Returns protobuf's JSON mapping with the names of cluster_stats.proto. Ends with a newline.
std::string ClusterStatsToJson(const ClusterStats& stats);

}  // namespace ott

#endif  // OTT_QUESTIONS_SLOW_CLUSTER_TABLE_H_
