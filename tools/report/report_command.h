// `ott report RUN`: who is slow, and what first diverged.

#ifndef OTT_TOOLS_REPORT_REPORT_COMMAND_H_
#define OTT_TOOLS_REPORT_REPORT_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::report {

void AddReportCommand(const CommandLine& line);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_REPORT_COMMAND_H_
