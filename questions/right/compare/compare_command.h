// `ott compare REFERENCE CURRENT`: two checkpoints, dumps, folders of dumps, or runs.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::compare {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddCompareCommand(CLI::App& app, int* exit_code);

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_COMMAND_H_
