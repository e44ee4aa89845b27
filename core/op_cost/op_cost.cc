#include "ott/core/op_cost/op_cost.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/op_cost/elementwise_cost.h"
#include "ott/core/op_cost/matrix_cost.h"
#include "ott/core/op_cost/movement_cost.h"
#include "ott/core/op_cost/op_call.h"

namespace ott {
namespace {

// Returns the cost that the compiler that wrote the op says.
std::optional<RawCost> ToldCost(const OpCall& call, OpPass) {
  RawCost cost;
  cost.flops = call.Number({"kernel_flop"}, kUnknownCost);
  cost.bytes = 1e9 * call.Number({"kernel_num_gb"}, kUnknownCost);
  if (std::isnan(cost.flops) && std::isnan(cost.bytes)) return std::nullopt;
  return cost;
}

using Formula = std::optional<RawCost> (*)(const OpCall& call, OpPass pass);

constexpr Formula kFormulas[] = {
    ToldCost,      GemmCost,      ConvolutionCost, AttentionCost, RecurrentCost,  ForeachCost,
    PointwiseCost, ReductionCost, SoftmaxCost,     NormCost,      DropoutCost,    EmbeddingCost,
    PoolingCost,   LossCost,      OptimizerCost,   MovementCost,  CollectiveCost,
};

// "[18,104,160]bool;[160]float32"
std::string Shapes(const OpCall& call) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < call.num_tensors() && i < kMost; ++i) {
    const std::optional<DType> dtype = call.tensor(i).dtype;
    absl::StrAppend(&text, i == 0 ? "[" : ";[", absl::StrJoin(call.tensor(i).shape, ","), "]",
                    dtype.has_value() ? std::string(Name(*dtype)) : "");
  }
  if (call.num_tensors() > kMost) absl::StrAppend(&text, ";+", call.num_tensors() - kMost);
  return text;
}

std::optional<double> Known(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

OpCost CostOf(const OpDescription& op, OpPass pass, std::optional<DType> dtype) {
  const OpCall call(op, dtype);
  RawCost raw;
  for (const Formula formula : kFormulas) {
    if (IsCollective(op) && formula != CollectiveCost) continue;
    const std::optional<RawCost> cost = formula(call, pass);
    if (!cost.has_value()) continue;
    raw = *cost;
    break;
  }
  return {Known(raw.flops),
          Known(raw.bytes),
          Known(raw.message_bytes),
          Known(raw.bus_bytes),
          raw.params.empty() ? Shapes(call) : raw.params,
          raw.matrix_sizes};
}

bool ComputesTwoGradients(const OpDescription& op, OpPass pass) {
  const OpCall call(op, std::nullopt);
  if (pass != OpPass::kBackward && !call.is_backward_op()) return false;
  return GemmCost(call, OpPass::kForward).has_value() || ConvolutionCost(call, OpPass::kForward).has_value();
}

}  // namespace ott
