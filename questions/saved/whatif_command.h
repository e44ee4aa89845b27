// `ott whatif RUN`: what would be saved if something were mended.

#ifndef OTT_QUESTIONS_SAVED_WHATIF_COMMAND_H_
#define OTT_QUESTIONS_SAVED_WHATIF_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::whatif {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddWhatIfCommand(CLI::App& app, int* exit_code);

}  // namespace ott::whatif

#endif  // OTT_QUESTIONS_SAVED_WHATIF_COMMAND_H_
