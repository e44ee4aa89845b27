// What do the kernels do? `ott prof`.

#ifndef OTT_QUESTIONS_KERNELS_KERNELS_QUESTION_H_
#define OTT_QUESTIONS_KERNELS_KERNELS_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::prof {

Question KernelsQuestion();

}  // namespace ott::prof

#endif  // OTT_QUESTIONS_KERNELS_KERNELS_QUESTION_H_
