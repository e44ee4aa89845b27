// `ott origin REFERENCE CURRENT`.

#ifndef OTT_QUESTIONS_ORIGIN_ORIGIN_COMMAND_H_
#define OTT_QUESTIONS_ORIGIN_ORIGIN_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::origin {

void AddOriginCommand(const CommandLine& line);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_COMMAND_H_
