// Did it become faster? `ott ab`, and its part of the report.

#ifndef OTT_QUESTIONS_FASTER_FASTER_QUESTION_H_
#define OTT_QUESTIONS_FASTER_FASTER_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::faster {

Question FasterQuestion();

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_FASTER_QUESTION_H_
