#include "ott/questions/learning/learning_question.h"

#include "ott/questions/learning/curves_command.h"
#include "ott/questions/learning/learning_answer.h"

namespace ott::learning {

// A single run has nothing to be compared with.
Question LearningQuestion() { return {kQuestion.title, AddCurvesCommand}; }

}  // namespace ott::learning
