// `ott prof FILE`: the kernels of a capture, with the ops they come from.

#ifndef OTT_QUESTIONS_KERNELS_PROF_COMMAND_H_
#define OTT_QUESTIONS_KERNELS_PROF_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::kernels {

// The question that this and `ott profile` answer.
inline constexpr char kKernelsTitle[] = "What do the kernels do?";

void AddProfCommand(const CommandLine& line);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_PROF_COMMAND_H_
