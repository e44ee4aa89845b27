// The interface of those who receive the operations of op ranges, with their tensors.

#ifndef OTT_CORE_NVTX_OP_OBSERVER_H_
#define OTT_CORE_NVTX_OP_OBSERVER_H_

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "ott/core/base/place.h"
#include "ott/core/nvtx/op_arg.h"

namespace ott {

// The part that an operation has in the training.
enum class OpRole : uint8_t {
  // Computes outputs from inputs.
  kOperation = 0,
  // Changes parameters or the optimizer's state: its outputs.
  kUpdate = 1,
  // Brings what no operation made: a batch, parameters from a checkpoint, a random state.
  kLoad = 2,
  // Its outputs depend on the inputs of other ranks, too: an all-reduce, a receive.
  kCollective = 3,
};

struct ObservedOp {
  std::string_view name;
  OpRole role = OpRole::kOperation;
  // The open layers, joined by dots; empty: none.
  std::string_view module;
  // The innermost PhaseRange; empty: none.
  std::string_view phase;
  // True if it is, or is inside of, a node of the backward pass.
  bool is_backward = false;
  // Below 0: none.
  int64_t seq = -1;
  Place source{};
  // The kernel's id.
  int thread = 0;
  absl::Span<const OpArg> args;
  absl::Span<const OpArg> attributes;
};

// Called by the thread on which the operation runs. Thread-safe. No call throws.
class OpObserver {
 public:
  virtual ~OpObserver() = default;

  // Called before the operation. What it returns is passed to the calls below. What `op` refers to is valid
  // during this call only. An operation may never end, for example because its thread ended.
  virtual void* Begin(const ObservedOp& op) = 0;
  // Called when outputs are known: several times, or never.
  virtual void AddOutputs(void* op, absl::Span<const OpArg> outputs) = 0;
  // Called after the operation. Operations inside of it have ended.
  virtual void End(void* op) = 0;
};

}  // namespace ott

#endif  // OTT_CORE_NVTX_OP_OBSERVER_H_
