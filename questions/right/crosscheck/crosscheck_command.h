// `ott crosscheck RUN`: whether the ranks of a run held the same tensors, from their dumps; and
// `ott crosscheck REFERENCE RUN`: whether a run did what a reference run did.

#ifndef OTT_QUESTIONS_RIGHT_CROSSCHECK_CROSSCHECK_COMMAND_H_
#define OTT_QUESTIONS_RIGHT_CROSSCHECK_CROSSCHECK_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::crosscheck {

void AddCrosscheckCommand(const CommandLine& line);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_CROSSCHECK_CROSSCHECK_COMMAND_H_
