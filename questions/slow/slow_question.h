// The question "Who is slow?": `ott stats`, and its part of the report.

#ifndef OTT_QUESTIONS_SLOW_SLOW_QUESTION_H_
#define OTT_QUESTIONS_SLOW_SLOW_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::slow {

Question SlowQuestion();

}  // namespace ott::slow

#endif  // OTT_QUESTIONS_SLOW_SLOW_QUESTION_H_
