// Is it still right? `ott compare`, `crosscheck`, `calibrate` and `show`, and their part of the report.

#ifndef OTT_QUESTIONS_RIGHT_RIGHT_QUESTION_H_
#define OTT_QUESTIONS_RIGHT_RIGHT_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::crosscheck {

Question RightQuestion();

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_RIGHT_QUESTION_H_
