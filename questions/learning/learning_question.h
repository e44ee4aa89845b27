// `ott curves` in the list of questions.

#ifndef OTT_QUESTIONS_LEARNING_LEARNING_QUESTION_H_
#define OTT_QUESTIONS_LEARNING_LEARNING_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::learning {

Question LearningQuestion();

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_LEARNING_QUESTION_H_
