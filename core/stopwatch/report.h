// Formats what a stopwatch has measured, for people and for spreadsheets.

#ifndef OTT_CORE_STOPWATCH_REPORT_H_
#define OTT_CORE_STOPWATCH_REPORT_H_

#include <string>

#include "ott/core/stopwatch/stopwatch_snapshot.h"

namespace ott {

// Sections for people: per iteration, per interval, nested scopes, CPU usage, one-time measurements, cost of
// observing. Rows are sorted by their share of the iteration; those without anything to tell are left out.
// The average per iteration divides by all measured iterations, also those in which a measurement did not
// run.
std::string FormatTable(const StopwatchSnapshot& snapshot);

// RFC 4180, with a header line: a row for each measurement and kind ("per_iteration", "per_interval",
// "device_per_interval"), and one of kind "iteration" for whole iterations. Durations in seconds; a quantile
// that is not known is empty.
std::string FormatCsv(const StopwatchSnapshot& snapshot);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_REPORT_H_
