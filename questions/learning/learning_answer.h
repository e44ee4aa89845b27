// Does it learn as well? A comparison of learning curves as an answer.

#ifndef OTT_QUESTIONS_LEARNING_LEARNING_ANSWER_H_
#define OTT_QUESTIONS_LEARNING_LEARNING_ANSWER_H_

#include <string>

#include "ott/questions/answer/answer.h"
#include "ott/questions/learning/learning.pb.h"

namespace ott::learning {

inline constexpr QuestionId kQuestion = {"learning", "Does it learn as well?", "curves"};

// Returns "as good", "better", "worse", "DIFFERS", "mixed", "cannot tell"
const char* NameOf(LearningVerdict::Kind kind);

// Makes the answer. Worse, a run of B that is not finite where none of A is, and another metric that differs
// where the first one shows no gain, are bad.
Answer AnswerLearning(const LearningVerdict& verdict);

// Returns the answer, then a table of all metrics, then what else there is to say; ends with a newline.
std::string ToText(const LearningVerdict& verdict);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_LEARNING_ANSWER_H_
