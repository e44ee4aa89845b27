// A run's report for people.

#ifndef OTT_TOOLS_REPORT_REPORT_TEXT_H_
#define OTT_TOOLS_REPORT_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "tools/report/run_report.h"

namespace ott::report {

enum class Grade { kGood, kBad, kUnknown };

struct Answer {
  std::string question;
  Grade grade;
  // Has no newline at its end.
  std::string text;
};

// "4 ranks on host node1, started 2026-11-21T05:39:10+00:00, optim_test_tools 0.1.0"
std::string DescribeRun(const RunReport& report);

// Who is slow; whether the replicas agree; whether the run is the reference's. In this order.
std::vector<Answer> Answers(const RunReport& report);

// The answers, what is missing, and the table of all ranks. Ends with a newline.
std::string ToText(const RunReport& report);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_REPORT_TEXT_H_
