// `ott show PATH`: what a checkpoint or a dump holds.

#ifndef OTT_QUESTIONS_RIGHT_SHOW_SHOW_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_SHOW_SHOW_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::show {

void AddShowCommand(const CommandLine& line);

}  // namespace ott::show

#endif  // OTT_QUESTIONS_RIGHT_SHOW_SHOW_COMMAND_H_
