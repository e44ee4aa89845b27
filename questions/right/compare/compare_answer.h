// Is it the reference run? Two runs, or dumps, compared, as an answer.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_ANSWER_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_ANSWER_H_

#include "ott/questions/answer/answer.h"
#include "ott/questions/right/compare/compare_runs.h"

namespace ott::compare {

// Also says what to run next: `ott origin`, of runs that logged their operations.
Answer AnswerCompare(const RunsComparison& comparison);

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_ANSWER_H_
