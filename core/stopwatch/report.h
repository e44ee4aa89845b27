// The statistics of a stopwatch, for people and for programs.

#ifndef OTT_CORE_STOPWATCH_REPORT_H_
#define OTT_CORE_STOPWATCH_REPORT_H_

#include <string>

#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {

// A table for people, sorted by share of the iteration. Averages per iteration divide by all measured
// iterations, also those in which a measurement did not run.
std::string FormatTable(const StopwatchStats& stats);

// StopwatchStats in protobuf's JSON, field names as in the .proto file, one field a line.
std::string FormatJson(const StopwatchStats& stats);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_REPORT_H_
