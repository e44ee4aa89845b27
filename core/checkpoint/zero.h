// Checkpoints of DeepSpeed's ZeRO: flat partitions of all parameters, one a rank.

#ifndef OTT_CORE_CHECKPOINT_ZERO_H_
#define OTT_CORE_CHECKPOINT_ZERO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Puts the partitions of stages 1 to 3 together. model: what *_model_states.pt of the first rank holds;
// partitions: what *_optim_states.pt of each rank hold, by rank. Returns `model` with "optimizer.state.NAME"
// for each parameter: "fp32", its master weights, and what the optimizer keeps of it; and, where the weights
// themselves are partitioned (stage 3), these as "module". INVALID_ARGUMENT if the partitions do not hold
// what param_shapes lists; UNIMPLEMENTED for model parallelism within.
absl::StatusOr<Value> JoinZeroPartitions(Value model, const std::vector<Value>& partitions);

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_ZERO_H_
