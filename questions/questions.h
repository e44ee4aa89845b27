// The list of all questions.

#ifndef OTT_QUESTIONS_QUESTIONS_H_
#define OTT_QUESTIONS_QUESTIONS_H_

#include <vector>

#include "ott/questions/answer/question.h"

namespace ott {

// Returns the questions in the order of the report and of the help.
std::vector<Question> AllQuestions();

}  // namespace ott

#endif  // OTT_QUESTIONS_QUESTIONS_H_
