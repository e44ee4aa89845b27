// Floating-point operations and memory traffic of ops, from their shapes.

#ifndef OTT_CORE_OP_COST_OP_COST_H_
#define OTT_CORE_OP_COST_OP_COST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ott/core/op_cost/op_description.h"

namespace ott {

// Absent: not known.
struct OpCost {
  std::optional<double> flops;
  std::optional<double> bytes;
  // For collectives, the size of the message, and what its slowest link carries (NCCL's bus bandwidth times
  // the time).
  std::optional<double> message_bytes;
  std::optional<double> bus_bytes;
  // The sizes in brief, without spaces: "M=256,N=32,K=128,float16", "[18,104,160]bool".
  std::string params;
  // The sizes that Tensor Cores take several of at once: M, N and K of a product; the channels of a
  // convolution without groups, which have fewer each. Empty for other ops.
  std::vector<int64_t> matrix_sizes;
};

OpCost CostOf(const OpDescription& op, OpPass pass, std::optional<DType> dtype);

// Returns true if this pass of op consists of an input's and a weight's gradient: the backward of a product
// or a convolution, and ops that are one, convolution_backward.
bool ComputesTwoGradients(const OpDescription& op, OpPass pass);

}  // namespace ott

#endif  // OTT_CORE_OP_COST_OP_COST_H_
