// Checkpoints of DeepSpeed's ZeRO: flat partitions of all parameters, one a rank.

#ifndef OTT_CORE_CHECKPOINT_ZERO_H_
#define OTT_CORE_CHECKPOINT_ZERO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Puts the partitions of stages 1 to 3 together. models: what *_model_states.pt of the first rank hold, or of
// each rank (stage 3); partitions: what *_optim_states.pt of each rank hold; both by rank. Returns the first
// model with "optimizer.state.NAME" for each parameter: "fp32", its master weights, and what the optimizer
// keeps of it; and, where the weights themselves are partitioned (stage 3), these in "module", with those
// that are not trained and tied ones. "rank_N" is what else rank N's files hold other than those of rank 0,
// such as random numbers. INVALID_ARGUMENT if the partitions do not hold what param_shapes lists.
absl::StatusOr<Value> JoinZeroPartitions(const std::vector<Value>& models,
                                         const std::vector<Value>& partitions);

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_ZERO_H_
