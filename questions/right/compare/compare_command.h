// `ott compare REFERENCE CURRENT`: two checkpoints, dumps, folders of dumps, or runs.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::compare {

void AddCompareCommand(const CommandLine& line);

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_COMMAND_H_
