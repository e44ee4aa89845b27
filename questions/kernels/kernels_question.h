// The question "What do the kernels do?": `ott prof`.

#ifndef OTT_QUESTIONS_KERNELS_KERNELS_QUESTION_H_
#define OTT_QUESTIONS_KERNELS_KERNELS_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::kernels {

Question KernelsQuestion();

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_KERNELS_QUESTION_H_
