// `ott prof FILE`: the kernels of a capture, with the ops they come from.

#ifndef OTT_QUESTIONS_KERNELS_PROF_COMMAND_H_
#define OTT_QUESTIONS_KERNELS_PROF_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::prof {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddProfCommand(CLI::App& app, int* exit_code);

}  // namespace ott::prof

#endif  // OTT_QUESTIONS_KERNELS_PROF_COMMAND_H_
