// `ott ab`: did it become faster?

#ifndef OTT_QUESTIONS_FASTER_AB_COMMAND_H_
#define OTT_QUESTIONS_FASTER_AB_COMMAND_H_

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "ott/questions/faster/comparison.h"

namespace ott::ab {

// A page for the browser, in one file. subject: one line about what was compared.
using PageOfComparison = std::function<std::string(const Comparison& comparison, const std::string& subject)>;

// Sets *exit_code (exit_code.h) when the subcommand ran. page: for `--html`; the room that draws it is above
// this one.
void AddAbCommand(CLI::App& app, PageOfComparison page, int* exit_code);

}  // namespace ott::ab

#endif  // OTT_QUESTIONS_FASTER_AB_COMMAND_H_
