// `ott hang`.

#ifndef OTT_QUESTIONS_HANG_HANG_COMMAND_H_
#define OTT_QUESTIONS_HANG_HANG_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::hang {

// Exit codes: good, not hanging; bad, hanging, and why is said; could not tell.
void AddHangCommand(const CommandLine& line);

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_HANG_COMMAND_H_
