// `ott report RUN`: who is slow, and what first diverged.

#ifndef OTT_TOOLS_REPORT_REPORT_COMMAND_H_
#define OTT_TOOLS_REPORT_REPORT_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::report {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddReportCommand(CLI::App& app, int* exit_code);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_REPORT_COMMAND_H_
