// Does it hang? `ott hang`, and its part of the report.

#ifndef OTT_QUESTIONS_HANG_HANG_QUESTION_H_
#define OTT_QUESTIONS_HANG_HANG_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::hang {

Question HangQuestion();

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_HANG_QUESTION_H_
