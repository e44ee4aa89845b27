#include "ott/core/op_cost/op_cost.h"

namespace ott {

OpCost CostOf(const OpDescription&, OpPass, std::optional<DType>) { return {}; }

bool HasTwoGradients(const OpDescription&) { return false; }

}  // namespace ott
