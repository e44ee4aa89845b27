// `ott trace`.

#ifndef OTT_TOOLS_TRACE_TRACE_COMMAND_H_
#define OTT_TOOLS_TRACE_TRACE_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::trace {

void AddTraceCommand(const CommandLine& line);

}  // namespace ott::trace

#endif  // OTT_TOOLS_TRACE_TRACE_COMMAND_H_
