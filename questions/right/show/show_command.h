// `ott show PATH`: what a checkpoint or a dump holds.

#ifndef OTT_QUESTIONS_RIGHT_SHOW_SHOW_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_SHOW_SHOW_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::show {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddShowCommand(CLI::App& app, int* exit_code);

}  // namespace ott::show

#endif  // OTT_QUESTIONS_RIGHT_SHOW_SHOW_COMMAND_H_
