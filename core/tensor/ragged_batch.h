// Batches of samples that differ in one dimension.

#ifndef OTT_CORE_TENSOR_RAGGED_BATCH_H_
#define OTT_CORE_TENSOR_RAGGED_BATCH_H_

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor.h"
#include "ott/core/tensor/value.h"

namespace ott {

// A batch like ACCV-Lab's RaggedBatch: samples lie in one tensor, filled up to the size of the largest.
struct RaggedBatch {
  Tensor data;  // [batch dimensions..., dimensions of a sample...]
  Tensor
      sample_sizes;  // integers, of the batch's shape: a sample's size in the dimension that is not uniform
  int non_uniform_dim = 1;  // of data
  int num_batch_dims = 1;
};

// Returns a map of the four members.
Value RaggedBatchStructure(const RaggedBatch& batch);

// Returns the samples without what fills them up, which share the batch's memory: lists, nested as the
// batch's dimensions are. Waits for the device the sizes are on. INVALID_ARGUMENT if the members do not fit
// together.
absl::StatusOr<Value> RaggedBatchSamples(const RaggedBatch& batch);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_RAGGED_BATCH_H_
