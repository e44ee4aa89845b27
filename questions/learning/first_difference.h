// Finds where two runs whose curves are compared first computed something else.

#ifndef OTT_QUESTIONS_LEARNING_FIRST_DIFFERENCE_H_
#define OTT_QUESTIONS_LEARNING_FIRST_DIFFERENCE_H_

#include <vector>

#include "ott/questions/learning/curve.h"
#include "ott/questions/learning/learning.pb.h"

namespace ott::learning {

// Sets first_difference and next of the verdict by the logs of operations of the first run of each side, else
// by their dumps; leaves them empty if there are neither.
void AddFirstDifference(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                        LearningVerdict* verdict);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_FIRST_DIFFERENCE_H_
