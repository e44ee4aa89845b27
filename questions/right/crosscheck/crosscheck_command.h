// `ott crosscheck RUN`: whether the ranks of a run held the same tensors, from their dumps; and
// `ott crosscheck REFERENCE RUN`: whether a run did what a reference run did.

#ifndef OTT_QUESTIONS_RIGHT_CROSSCHECK_CROSSCHECK_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_CROSSCHECK_CROSSCHECK_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::crosscheck {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddCrosscheckCommand(CLI::App& app, int* exit_code);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_CROSSCHECK_CROSSCHECK_COMMAND_H_
