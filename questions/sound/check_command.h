// `ott check RUN`: is this step sound?

#ifndef OTT_QUESTIONS_SOUND_CHECK_COMMAND_H_
#define OTT_QUESTIONS_SOUND_CHECK_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::sound {

void AddCheckCommand(const CommandLine& line);

}  // namespace ott::sound

#endif  // OTT_QUESTIONS_SOUND_CHECK_COMMAND_H_
