// `ott whatif RUN`: what would be saved if something were mended.

#ifndef OTT_QUESTIONS_SAVED_WHATIF_COMMAND_H_
#define OTT_QUESTIONS_SAVED_WHATIF_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::saved {

void AddWhatIfCommand(const CommandLine& line);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_WHATIF_COMMAND_H_
