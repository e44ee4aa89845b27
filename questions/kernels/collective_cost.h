// The cost of a collective of a trace.

#ifndef OTT_QUESTIONS_KERNELS_COLLECTIVE_COST_H_
#define OTT_QUESTIONS_KERNELS_COLLECTIVE_COST_H_

#include "ott/core/op_cost/op_cost.h"
#include "tools/profile/profile.h"

namespace ott::prof {

// By the message and the group's size that the trace tells: see CollectiveCost() in
// ott/core/op_cost/movement_cost.h.
OpCost CostOfCollective(const Profile::CollectiveKind& kind);

}  // namespace ott::prof

#endif  // OTT_QUESTIONS_KERNELS_COLLECTIVE_COST_H_
