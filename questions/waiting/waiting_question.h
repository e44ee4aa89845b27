// The question "Who waits for whom?": its part of the report.

#ifndef OTT_QUESTIONS_WAITING_WAITING_QUESTION_H_
#define OTT_QUESTIONS_WAITING_WAITING_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::waiting {

Question WaitingQuestion();

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_WAITING_QUESTION_H_
