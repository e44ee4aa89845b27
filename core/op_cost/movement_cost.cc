#include "ott/core/op_cost/movement_cost.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace ott {

std::optional<RawCost> EmbeddingCost(const OpCall& call, OpPass pass) {
  if (!call.IsOneOf({"embedding", "embedding_dense"})) return std::nullopt;
  RawCost cost;
  if (call.num_tensors() < 2) return cost;
  if (call.name() == "embedding_dense") {  // (grad_output, indices, num_weights, ...)
    const OpArgument& dy = call.tensor(0);
    const double rows = call.Number("num_weights", 2, kUnknownCost);
    if (dy.shape.empty()) return cost;
    cost.flops = Elements(dy.shape);
    cost.bytes = call.IndexBytes(call.tensor(1)) + call.Bytes(dy) +
                 rows * Double(dy.shape.back()) * call.ElementSize(dy);
    return cost;
  }
  // torch.nn.functional has the indices first, ATen the table.
  const OpArgument* table = call.Tensor("weight", 0);
  const OpArgument* indices = call.Tensor(call.Tensor("input", 99) != nullptr ? "input" : "indices", 1);
  if (table == nullptr || indices == nullptr || table == indices) return cost;
  if (table->dtype.has_value() && !IsFloatingPoint(*table->dtype)) std::swap(table, indices);
  if (table->shape.size() != 2) return cost;
  const double out = Elements(indices->shape) * Double(table->shape[1]);
  const double e = call.ElementSize(*table);
  const bool backward = IsBackward(call, pass);
  cost.flops = backward ? out : 0;
  cost.bytes = call.IndexBytes(*indices) + (backward ? out * e + call.Bytes(*table) : 2 * out * e);
  return cost;
}

std::optional<RawCost> MovementCost(const OpCall& call, OpPass pass) {
  RawCost cost;
  const OpArgument* first = call.num_tensors() > 0 ? &call.tensor(0) : nullptr;
  const auto is = [&](std::initializer_list<std::string_view> names) { return call.IsOneOf(names); };
  const bool known = is(
      {"copy",         "clone",          "contiguous", "to",        "to_copy",     "type",      "float",
       "half",         "bfloat16",       "double",     "flip",      "roll",        "tril",      "triu",
       "fill",         "zero",           "zeros_like", "ones_like", "full_like",   "rand_like", "randn_like",
       "normal",       "uniform",        "bernoulli",  "cat",       "concat",      "stack",     "gather",
       "index_select", "take_along_dim", "index",      "scatter",   "scatter_add", "index_add", "index_copy",
       "index_put",    "index_put_impl"});
  if (!known) return std::nullopt;
  if (first == nullptr || IsBackward(call, pass)) return cost;
  const double x = call.Bytes(*first);
  cost.flops = 0;
  if (is({"fill", "zero", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "normal",
          "uniform", "bernoulli"})) {
    cost.bytes = x;
  } else if (call.name() == "copy" && call.num_tensors() > 1) {
    cost.bytes = x + call.Bytes(call.tensor(1));
  } else if (is({"cat", "concat", "stack"})) {
    cost.bytes = 2 * call.SumOfBytes();
  } else if (is({"gather", "take_along_dim"}) && call.num_tensors() > 1) {
    const OpArgument& index = call.tensor(1);
    cost.bytes = call.IndexBytes(index) + 2 * Elements(index.shape) * call.ElementSize(*first);
  } else if (call.name() == "index_select" && call.num_tensors() > 1) {
    const std::vector<double> dim = call.Numbers("dim", 1);
    const size_t rank = first->shape.size();
    const double at = dim.empty()  ? kUnknownCost
                      : dim[0] < 0 ? dim[0] + Double(static_cast<int64_t>(rank))
                                   : dim[0];
    if (at >= 0 && at < Double(static_cast<int64_t>(rank)) && first->shape[static_cast<size_t>(at)] > 0) {
      const OpArgument& index = call.tensor(1);
      const double out =
          Elements(first->shape) / Double(first->shape[static_cast<size_t>(at)]) * Elements(index.shape);
      cost.bytes = call.IndexBytes(index) + 2 * out * call.ElementSize(*first);
    }
  } else if (call.name() == "index" && call.num_tensors() > 1) {
    // Index tensors stand for the leading dimensions; how many a mask picks is not known.
    Shape index;
    double index_bytes = 0;
    for (size_t i = 1; i < call.num_tensors(); ++i) {
      const OpArgument& tensor = call.tensor(i);
      const std::optional<Shape> together = Broadcast(index, tensor.shape);
      if (!tensor.dtype.has_value() || *tensor.dtype == DType::kBool || !together.has_value()) return cost;
      index = *together;
      index_bytes += call.IndexBytes(tensor);
    }
    double out = Elements(index);
    for (size_t i = call.num_tensors() - 1; i < first->shape.size(); ++i) out *= Double(first->shape[i]);
    cost.bytes = index_bytes + 2 * out * call.ElementSize(*first);
  } else if (is({"scatter", "scatter_add", "index_add", "index_copy", "index_put", "index_put_impl"})) {
    cost.flops = kUnknownCost;
    const bool puts = is({"index_put", "index_put_impl"});
    // Values that are one number have no sizes in PyTorch's labels, so that what is an index is not told.
    if (call.num_tensors() < 3 || (puts && call.tensors_only())) return cost;
    const OpArgument& index = call.tensor(1);
    const OpArgument& source = call.tensor(puts ? call.num_tensors() - 1 : 2);
    double index_bytes = 0;
    for (size_t i = 1; &call.tensor(i) != &source; ++i) index_bytes += call.IndexBytes(call.tensor(i));
    const bool adds = is({"scatter_add", "index_add"}) || (puts && call.Number("accumulate", 3, 0) != 0);
    const double moved = Elements(is({"scatter", "scatter_add"}) ? index.shape : source.shape);
    const double e = call.ElementSize(*first);
    cost.flops = adds ? moved : 0;
    cost.bytes = index_bytes + moved * call.ElementSize(source) + moved * e * (adds ? 2 : 1);
    // Out of place, the rest is copied.
    if (!call.in_place()) cost.bytes += 2 * x;
  } else {
    const auto to = ParseDType(call.Text("dtype"));
    const double written = to.ok() ? Elements(first->shape) * static_cast<double>(SizeOf(*to)) : x;
    cost.bytes = x + written;
  }
  return cost;
}

std::optional<RawCost> CollectiveCost(const OpCall& call, OpPass) {
  std::string name = call.name();
  if (name.substr(0, 4) == "nccl") name = name.substr(4);
  name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
  enum { kAllReduce, kPart, kWhole } kind;
  const bool reduces = name == "allreduce" || name == "reducescatter" || name == "reducescatterbase" ||
                       name == "reduce" || name == "allreducecoalesced" || name == "reducescattertensor";
  if (name.substr(0, 9) == "allreduce") {
    kind = kAllReduce;
  } else if (name.substr(0, 13) == "reducescatter" || name.substr(0, 9) == "allgather" ||
             name.substr(0, 8) == "alltoall") {
    kind = kPart;
  } else if (name.substr(0, 9) == "broadcast" || name == "reduce" || name == "send" || name == "recv") {
    kind = kWhole;
  } else {
    return std::nullopt;
  }
  RawCost cost;
  const OpArgument* largest = call.Largest();
  // c10d::reduce_scatter_ tells the result alone, which is a rank's part.
  const bool told_part = call.module() == "c10d" && name == "reducescatter" && call.num_tensors() == 1;
  if (largest == nullptr || told_part) return cost;
  double ranks = kUnknownCost;
  for (const std::string_view attribute : {"world_size", "ranks", "nranks", "group_size"}) {
    if (std::isnan(ranks)) ranks = call.Number(attribute, -1, kUnknownCost);
  }
  double elements = Elements(largest->shape);
  // The gathered tensor, where only a rank's own is told.
  if (name.substr(0, 9) == "allgather" && call.num_tensors() == 1) elements *= ranks;
  const double share = ranks > 0 ? (ranks - 1) / ranks : kUnknownCost;
  cost.message_bytes = elements * call.ElementSize(*largest);
  cost.bus_bytes = cost.message_bytes * (kind == kAllReduce ? 2 * share : kind == kPart ? share : 1);
  cost.bytes = cost.bus_bytes;
  cost.flops = reduces ? elements * share : 0;
  return cost;
}

}  // namespace ott
