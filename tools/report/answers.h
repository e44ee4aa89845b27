// The questions about a run, answered.

#ifndef OTT_TOOLS_REPORT_ANSWERS_H_
#define OTT_TOOLS_REPORT_ANSWERS_H_

#include <string>
#include <vector>

#include "tools/report/document.h"
#include "tools/report/run_report.h"

namespace ott::report {

// "4 ranks on host node1, started 2026-11-21T05:39:10+00:00, optim_test_tools 0.1.0"
std::string DescribeRun(const RunReport& report);

// Who is slow; what mending it would save; who waits for whom; does it hang; do the replicas agree; is it the
// reference run; and where runs were given to compare with, which operation made the difference, and did it
// become faster.
std::vector<Answer> Answers(const RunReport& report);

// Returns what stands behind the answers.
std::vector<Details> DetailsOf(const RunReport& report);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_ANSWERS_H_
