// Says for people who waits for whom.

#ifndef OTT_QUESTIONS_WAITING_ARRIVAL_TEXT_H_
#define OTT_QUESTIONS_WAITING_ARRIVAL_TEXT_H_

#include <string>
#include <vector>

#include "ott/dist/stats/cluster_stats.pb.h"

namespace ott {

// Says who is waited for, and who paused, a line each; empty if nobody.
std::vector<std::string> WaitingLines(const ClusterStats& stats);

// Returns what is measured there, and by which ranks: "sum" of group dp.
std::string ArrivalPlace(const ArrivalStats& arrivals);

// Returns a table of collective measurements, and says by which clock it is; empty if no arrivals were
// gathered. Ends with a newline.
std::string FormatArrivals(const ClusterStats& stats);

}  // namespace ott

#endif  // OTT_QUESTIONS_WAITING_ARRIVAL_TEXT_H_
