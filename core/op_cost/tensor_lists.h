// The lists of tensors that an op was called with: parameters, their gradients, and so on.

#ifndef OTT_CORE_OP_COST_TENSOR_LISTS_H_
#define OTT_CORE_OP_COST_TENSOR_LISTS_H_

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "ott/core/op_cost/op_call.h"

namespace ott {

using TensorList = std::vector<const OpArgument*>;

// PyTorch's labels have all tensors one after the other: then the lists are equal shapes over and over, as
// many times as just one of counts says. Empty if that does not tell. Tensors of no dimension, which count
// steps, are left out.
std::vector<TensorList> ListsOf(const OpCall& call, std::initializer_list<size_t> counts);

// Returns the elements of all tensors of a list.
double ElementsOf(const TensorList& list);
double BytesOf(const OpCall& call, const TensorList& list);

}  // namespace ott

#endif  // OTT_CORE_OP_COST_TENSOR_LISTS_H_
