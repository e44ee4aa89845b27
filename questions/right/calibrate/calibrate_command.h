// `ott calibrate RUN RUN RUN -o tolerances.textproto`.

#ifndef OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::calibrate {

void AddCalibrateCommand(const CommandLine& line);

}  // namespace ott::calibrate

#endif  // OTT_QUESTIONS_RIGHT_CALIBRATE_CALIBRATE_COMMAND_H_
