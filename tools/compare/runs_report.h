// The comparison of two runs, for people and for programs.

#ifndef OTT_TOOLS_COMPARE_RUNS_REPORT_H_
#define OTT_TOOLS_COMPARE_RUNS_REPORT_H_

#include <string>

#include "tools/compare/compare_runs.h"

namespace ott {

// For people. The line of the first divergence has all there is to know: iteration, rank, tensor, element,
// bits.
std::string ToText(const RunsComparison& comparison);

// The members of RunsComparison, laid out as Python's json.dump(indent=2) does.
std::string ToJson(const RunsComparison& comparison);

}  // namespace ott

#endif  // OTT_TOOLS_COMPARE_RUNS_REPORT_H_
