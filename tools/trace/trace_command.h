// `ott trace`.

#ifndef OTT_TOOLS_TRACE_TRACE_COMMAND_H_
#define OTT_TOOLS_TRACE_TRACE_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::trace {

// Adds the subcommand; when it is called, its exit code (tools/exit_code.h) is in *exit_code after parsing.
void AddTraceCommand(CLI::App& app, int* exit_code);

}  // namespace ott::trace

#endif  // OTT_TOOLS_TRACE_TRACE_COMMAND_H_
