// Finds what is wrong with single runs before they are compared.

#ifndef OTT_QUESTIONS_LEARNING_EXAMINED_RUNS_H_
#define OTT_QUESTIONS_LEARNING_EXAMINED_RUNS_H_

#include <string>
#include <vector>

#include "ott/questions/learning/curve.h"
#include "ott/questions/learning/learning.pb.h"

namespace ott::learning {

struct ExaminedRuns {
  std::vector<RunCurves> a;
  std::vector<RunCurves> b;
};

// Adds to the verdict what is wrong with runs. Returns them without single values of the metric that are not
// finite, and without those that were cut short. One that ends with such values goes on with them to the last
// end of all. REQUIRES: all have the metric
ExaminedRuns ExamineRuns(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                         const std::string& metric, bool lower_is_better, LearningVerdict* verdict);

// Returns true if a run of B diverged, was cut short or ended in what is not finite: B is never as good then.
bool HasFailedRunOfB(const LearningVerdict& verdict);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_EXAMINED_RUNS_H_
