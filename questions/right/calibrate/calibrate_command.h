// `ott calibrate RUN RUN RUN -o tolerances.textproto`.

#ifndef OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::calibrate {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddCalibrateCommand(CLI::App& app, int* exit_code);

}  // namespace ott::calibrate

#endif  // OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_COMMAND_H_
