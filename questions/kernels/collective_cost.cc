#include "ott/questions/kernels/collective_cost.h"

#include <cstdint>
#include <optional>

namespace ott::kernels {

OpCost CostOfCollective(const Profile::CollectiveKind& kind) {
  OpDescription op;
  op.module = "c10d";
  op.op = kind.name;
  for (const int64_t elements : {kind.in_elements, kind.out_elements}) {
    if (elements < 0) continue;
    OpArgument& tensor = op.arguments.emplace_back();
    tensor.position = static_cast<int>(op.arguments.size());
    tensor.is_tensor = true;
    tensor.shape = {elements};
    if (const auto dtype = ParseDType(kind.dtype); dtype.ok()) tensor.dtype = *dtype;
  }
  if (kind.group_size > 0) {
    OpArgument& size = op.arguments.emplace_back();
    size.name = "group_size";
    size.numbers = {static_cast<double>(kind.group_size)};
  }
  return CostOf(op, OpPass::kForward, std::nullopt);
}

}  // namespace ott::kernels
