// The cost of a collective of a trace.

#ifndef OTT_QUESTIONS_KERNELS_COLLECTIVE_COST_H_
#define OTT_QUESTIONS_KERNELS_COLLECTIVE_COST_H_

#include "ott/core/kernel_profile/profile.h"
#include "ott/core/op_cost/op_cost.h"

namespace ott::kernels {

// Computes the cost by the message and the group's size that the trace tells: see CollectiveCost() in
// ott/core/op_cost/movement_cost.h.
OpCost CostOfCollective(const Profile::CollectiveKind& kind);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_COLLECTIVE_COST_H_
