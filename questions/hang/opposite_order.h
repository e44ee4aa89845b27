// Ranks that take two groups in another order than the rest.

#ifndef OTT_QUESTIONS_HANG_OPPOSITE_ORDER_H_
#define OTT_QUESTIONS_HANG_OPPOSITE_ORDER_H_

#include <vector>

#include "ott/questions/hang/job_state.h"

namespace ott {

// Says who is to blame if ranks of `a` and `b`, two collective operations, wait for each other. Of those that
// entered only the one and those that entered only the other, the fewer are; of as many, those that came to
// the two groups the other way round the time before. Empty if nothing tells.
std::vector<int> RanksInOppositeOrder(const JobState& job, const JobOperation& a, const JobOperation& b);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_OPPOSITE_ORDER_H_
