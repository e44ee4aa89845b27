// Describes what an op was called with, as far as a label tells it.

#ifndef OTT_CORE_OP_COST_OP_DESCRIPTION_H_
#define OTT_CORE_OP_COST_OP_DESCRIPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ott/core/tensor/dtype.h"

namespace ott {

enum class OpDirection : uint8_t { kUnknown, kForward, kBackward };

// A tensor, a number, a list of numbers or a text.
struct OpArgument {
  std::string name;  // "" if only the position is known
  // From 0 in the order of the call; the tensors of a list share theirs. -1: an attribute, known by name
  // only.
  int position = -1;
  bool is_tensor = false;
  std::optional<DType> dtype;   // of a tensor; absent if the label does not tell
  std::vector<int64_t> shape;   // of a tensor
  std::vector<double> numbers;  // one for a number or a bool (0, 1)
  std::string text;
};

struct OpDescription {
  std::string module;  // "torch.nn.functional", "aten", "encoder.0", ...; may be empty
  std::string op;      // "linear", "addmm", ...; without the module
  std::vector<OpArgument> arguments;
  // Only tensors are listed, as in PyTorch's labels: what else the op was called with is not known.
  bool tensors_only = false;
};

// Returns true if it is of a library for communication: "gather" of NCCL is none of a tensor's elements.
inline bool IsCollective(const OpDescription& op) {
  return op.module == "nccl" || op.module == "c10d" || op.module == "_c10d_functional";
}

// The part of an op that is asked about. Ops that multiply an input by a weight have two gradients, computed
// by kernels of their own.
enum class OpPass { kForward, kBackward, kInputGradient, kWeightGradient };

}  // namespace ott

#endif  // OTT_CORE_OP_COST_OP_DESCRIPTION_H_
