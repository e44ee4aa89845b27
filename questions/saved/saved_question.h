// The question "What would mending it save?": `ott whatif`, and its part of the report.

#ifndef OTT_QUESTIONS_SAVED_SAVED_QUESTION_H_
#define OTT_QUESTIONS_SAVED_SAVED_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::saved {

Question SavedQuestion();

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_SAVED_QUESTION_H_
