// `ott profile -o FILE -- PROGRAM ARG...`: captures what a program does.

#ifndef OTT_TOOLS_PROFILE_PROFILE_COMMAND_H_
#define OTT_TOOLS_PROFILE_PROFILE_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::profile {

// Sets *exit_code when the subcommand ran: that of the program; 2 (exit_code.h) if it was not started, 127 if
// it was not found and 126 if it cannot be executed. A program that a signal ended ends this process by the
// same signal.
void AddProfileCommand(const CommandLine& line);

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_PROFILE_COMMAND_H_
