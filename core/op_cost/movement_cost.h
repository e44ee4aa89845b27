// Costs of ops that move elements: within a device, and between the ranks of a job. Bytes are the least
// possible; |x| is the bytes of x, e those of an element.

#ifndef OTT_CORE_OP_COST_MOVEMENT_COST_H_
#define OTT_CORE_OP_COST_MOVEMENT_COST_H_

#include <optional>
#include <string_view>
#include <vector>

#include "ott/core/op_cost/op_call.h"

namespace ott {

// Absent, all of these, for ops of other kinds.

// Embedding of I indices in rows of D: 0; indices + 2 I D e. Backward (dense): I D additions; indices + I D e
// read, the whole gradient of the table written.
std::optional<RawCost> EmbeddingCost(const OpCall& call, OpPass pass);

// Views (reshape, of which a copy is an op of its own), copies, type conversions, fills, new tensors, cat,
// stack, gather, index, scatter, masks: 0 FLOPs (accumulating ones 1 an element); what is read and written:
//   views, empty                nothing
//   copies                      2 |x|
//   conversions                 |x| + N bytes of the type asked for; not known where a label tells no type
//   fills, full, ones, randperm the result; drawing random numbers is not counted
//   cat and stack               2 |inputs|
//   gather and index_select     the index and 2 |out|
//   scatter                     the index, |src| and as much written (and read, where it adds)
//   masked_scatter              the mask, |src| and as much written, as if all of src were used
//   masked_select, nonzero      the mask and |x|: what they find is not told by sizes; nonzero compares, N
std::optional<RawCost> MovementCost(const OpCall& call, OpPass pass);

// Returns the names of the ops that MovementCost() knows.
std::vector<std::string_view> MovementOpNames();

// NCCL's collectives among P ranks ("world_size") on messages of S bytes, as nccl-tests defines them:
//   all_reduce            bus 2 (P-1)/P S
//   reduce_scatter, all_gather, all_to_all   (P-1)/P S, S being the larger buffer's size
//   broadcast, reduce, send, recv            S
// bytes is what a rank's links carry, the bus figure; FLOPs are (P-1)/P additions an element where it
// reduces.
std::optional<RawCost> CollectiveCost(const OpCall& call, OpPass pass);

}  // namespace ott

#endif  // OTT_CORE_OP_COST_MOVEMENT_COST_H_
