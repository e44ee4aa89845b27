// The question "Which operation made it?": `ott origin`, and its part of the report.

#ifndef OTT_QUESTIONS_ORIGIN_ORIGIN_QUESTION_H_
#define OTT_QUESTIONS_ORIGIN_ORIGIN_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::origin {

Question OriginQuestion();

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_QUESTION_H_
