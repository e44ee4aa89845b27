// `ott ab`: did it become faster?

#ifndef OTT_QUESTIONS_FASTER_AB_COMMAND_H_
#define OTT_QUESTIONS_FASTER_AB_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::faster {

void AddAbCommand(const CommandLine& line);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_AB_COMMAND_H_
