// `ott curves`: does it learn as well?

#ifndef OTT_QUESTIONS_LEARNING_CURVES_COMMAND_H_
#define OTT_QUESTIONS_LEARNING_CURVES_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::learning {

void AddCurvesCommand(const CommandLine& line);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_CURVES_COMMAND_H_
