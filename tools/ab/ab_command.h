// `ott ab`: did it become faster?

#ifndef OTT_TOOLS_AB_AB_COMMAND_H_
#define OTT_TOOLS_AB_AB_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::ab {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddAbCommand(CLI::App& app, int* exit_code);

}  // namespace ott::ab

#endif  // OTT_TOOLS_AB_AB_COMMAND_H_
