// Checkpoints of torch.distributed.checkpoint: a folder of .metadata and .distcp files.

#ifndef OTT_CORE_CHECKPOINT_DISTRIBUTED_CHECKPOINT_H_
#define OTT_CORE_CHECKPOINT_DISTRIBUTED_CHECKPOINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"

namespace ott {

inline constexpr char kDistributedMetadata[] = ".metadata";

// The way out where Megatron's optimizer does not say which parameters it is of.
inline constexpr char kFullyReshardable[] = "save it with --dist-ckpt-optim-fully-reshardable";

// Whole tensors, of the chunks that ranks wrote, however many there were, and other values; nested as the
// state was that was saved. Chunks stay in their files. Of Megatron's optimizers, flat parts of ranks are
// parts of whole tensors (fully_sharded_model_space), and padding between parameters is 0 (dp_reshardable;
// UNIMPLEMENTED where it cannot be told from them). DATA_LOSS if a file or a chunk is cut or missing;
// INVALID_ARGUMENT, naming the tensor, where chunks overlap or leave a gap, for a file out of the folder, and
// for metadata that is not understood.
absl::StatusOr<Value> ReadDistributedCheckpoint(const std::string& dir);

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_DISTRIBUTED_CHECKPOINT_H_
