// `ott curves`: does it learn as well?

#ifndef OTT_QUESTIONS_LEARNING_CURVES_COMMAND_H_
#define OTT_QUESTIONS_LEARNING_CURVES_COMMAND_H_

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "ott/questions/learning/learning.pb.h"

namespace ott::learning {

// A page for the browser, in one file. subject: one line about what was compared.
using PageOfCurves = std::function<std::string(const LearningVerdict& verdict, const std::string& subject)>;

// Sets *exit_code (exit_code.h) when the subcommand ran. page: for `--html`; the room that draws it is above
// this one.
void AddCurvesCommand(CLI::App& app, PageOfCurves page, int* exit_code);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_CURVES_COMMAND_H_
