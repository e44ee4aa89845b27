// `ott origin REFERENCE CURRENT`.

#ifndef OTT_QUESTIONS_ORIGIN_ORIGIN_COMMAND_H_
#define OTT_QUESTIONS_ORIGIN_ORIGIN_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::origin {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddOriginCommand(CLI::App& app, int* exit_code);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_COMMAND_H_
