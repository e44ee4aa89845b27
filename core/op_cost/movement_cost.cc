#include "ott/core/op_cost/movement_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace ott {
namespace {

enum class Movement : uint8_t {
  kNothing,  // views, and memory that is not written
  kCopy,
  kConvert,
  kFill,
  kCreate,
  kConcatenate,
  kGather,
  kIndexSelect,
  kIndex,
  kScatter,
  kMaskedSelect,
  kMaskedScatter,
  kNonzero,
};

struct MovementOp {
  std::string_view name;
  Movement kind;
  std::optional<DType> type = std::nullopt;  // of the result, where the op's name says it
};

constexpr MovementOp kMovementOps[] = {
    {"reshape", Movement::kNothing},
    {"reshape_alias", Movement::kNothing},
    {"view", Movement::kNothing},
    {"unsafe_view", Movement::kNothing},
    {"view_as", Movement::kNothing},
    {"flatten", Movement::kNothing},
    {"unflatten", Movement::kNothing},
    {"expand", Movement::kNothing},
    {"expand_as", Movement::kNothing},
    {"permute", Movement::kNothing},
    {"transpose", Movement::kNothing},
    {"t", Movement::kNothing},
    {"squeeze", Movement::kNothing},
    {"unsqueeze", Movement::kNothing},
    {"select", Movement::kNothing},
    {"slice", Movement::kNothing},
    {"narrow", Movement::kNothing},
    {"split", Movement::kNothing},
    {"chunk", Movement::kNothing},
    {"unbind", Movement::kNothing},
    {"as_strided", Movement::kNothing},
    {"detach", Movement::kNothing},
    {"alias", Movement::kNothing},
    {"empty", Movement::kNothing},
    {"empty_like", Movement::kNothing},
    {"empty_strided", Movement::kNothing},
    {"new_empty", Movement::kNothing},
    {"copy", Movement::kCopy},
    {"clone", Movement::kCopy},
    {"contiguous", Movement::kCopy},
    {"flip", Movement::kCopy},
    {"roll", Movement::kCopy},
    {"tril", Movement::kCopy},
    {"triu", Movement::kCopy},
    {"to", Movement::kConvert},
    {"to_copy", Movement::kConvert},
    {"type", Movement::kConvert},
    {"type_as", Movement::kConvert},
    {"half", Movement::kConvert, DType::kFloat16},
    {"bfloat16", Movement::kConvert, DType::kBFloat16},
    {"float", Movement::kConvert, DType::kFloat32},
    {"double", Movement::kConvert, DType::kFloat64},
    {"char", Movement::kConvert, DType::kInt8},
    {"short", Movement::kConvert, DType::kInt16},
    {"int", Movement::kConvert, DType::kInt32},
    {"long", Movement::kConvert, DType::kInt64},
    {"byte", Movement::kConvert, DType::kUInt8},
    {"bool", Movement::kConvert, DType::kBool},
    {"cfloat", Movement::kConvert, DType::kComplex64},
    {"cdouble", Movement::kConvert, DType::kComplex128},
    {"fill", Movement::kFill},
    {"zero", Movement::kFill},
    {"zeros_like", Movement::kFill},
    {"ones_like", Movement::kFill},
    {"full_like", Movement::kFill},
    {"rand_like", Movement::kFill},
    {"randn_like", Movement::kFill},
    {"normal", Movement::kFill},
    {"uniform", Movement::kFill},
    {"bernoulli", Movement::kFill},
    {"full", Movement::kCreate},
    {"ones", Movement::kCreate, DType::kFloat32},
    {"zeros", Movement::kCreate, DType::kFloat32},
    {"rand", Movement::kCreate, DType::kFloat32},
    {"randn", Movement::kCreate, DType::kFloat32},
    {"randperm", Movement::kCreate, DType::kInt64},
    {"cat", Movement::kConcatenate},
    {"concat", Movement::kConcatenate},
    {"stack", Movement::kConcatenate},
    {"gather", Movement::kGather},
    {"take_along_dim", Movement::kGather},
    {"index_select", Movement::kIndexSelect},
    {"index", Movement::kIndex},
    {"scatter", Movement::kScatter},
    {"scatter_add", Movement::kScatter},
    {"index_add", Movement::kScatter},
    {"index_copy", Movement::kScatter},
    {"index_put", Movement::kScatter},
    {"index_put_impl", Movement::kScatter},
    {"masked_select", Movement::kMaskedSelect},
    {"masked_scatter", Movement::kMaskedScatter},
    {"nonzero", Movement::kNonzero},
};

// Whole tensors; of the mask or the condition, bool where it is not told.
double MaskBytes(const OpArgument& mask) {
  return Elements(mask.shape) * static_cast<double>(SizeOf(mask.dtype.value_or(DType::kBool)));
}

double ConvertedBytes(const OpCall& call, const MovementOp& op) {
  constexpr Parameter kType{"dtype", 1};
  const OpArgument& x = call.tensor(0);
  std::optional<DType> to = op.type.has_value() ? op.type : call.Type(kType);
  if (call.num_tensors() > 1) to = call.TypeOf(call.tensor(1));  // "type_as", "to.other"
  if (to.has_value()) return Elements(x.shape) * static_cast<double>(SizeOf(*to));
  // Only sizes are told, or no other type is asked for.
  return call.tensors_only() ? kUnknownCost : call.Bytes(x);
}

double CreatedBytes(const OpCall& call, const MovementOp& op) {
  constexpr Parameter kSize{"size", 0};
  constexpr Parameter kCount{"n", 0};
  std::vector<double> sizes = call.Numbers(op.name == "randperm" ? kCount : kSize);
  // Sizes may be given one by one: zeros(2, 3). A fill value comes after them.
  const std::vector<double> numbers = call.NumbersWithoutName();
  if (sizes.size() == 1 && op.name != "full" && numbers.size() > 1) sizes = numbers;
  if (sizes.empty() && call.tensors_only()) return kUnknownCost;
  std::optional<DType> type = call.Type({"dtype"});
  if (!type.has_value() && op.name != "randperm") type = call.default_type();
  if (!type.has_value()) type = op.type;
  if (!type.has_value()) return kUnknownCost;
  double elements = 1;
  for (const double size : sizes) elements *= size;
  return elements * static_cast<double>(SizeOf(*type));
}

double IndexSelectBytes(const OpCall& call) {
  constexpr Parameter kDimension{"dim", 1};
  const OpArgument& x = call.tensor(0);
  const OpArgument& index = call.tensor(1);
  const double rank = static_cast<double>(x.shape.size());
  const double dimension = call.Number(kDimension, kUnknownCost);
  const double at = dimension < 0 ? dimension + rank : dimension;
  if (!(at >= 0 && at < rank)) return kUnknownCost;
  const double out = Elements(x.shape) / Double(x.shape[static_cast<size_t>(at)]) * Elements(index.shape);
  return call.IndexBytes(index) + 2 * out * call.ElementSize(x);
}

// Index tensors stand for the leading dimensions; how many a mask picks is not known.
double IndexedBytes(const OpCall& call) {
  const OpArgument& x = call.tensor(0);
  Shape index;
  double index_bytes = 0;
  for (size_t i = 1; i < call.num_tensors(); ++i) {
    const OpArgument& tensor = call.tensor(i);
    const std::optional<Shape> together = Broadcast(index, tensor.shape);
    if (!tensor.dtype.has_value() || *tensor.dtype == DType::kBool || !together.has_value())
      return kUnknownCost;
    index = *together;
    index_bytes += call.IndexBytes(tensor);
  }
  double out = Elements(index);
  for (size_t i = call.num_tensors() - 1; i < x.shape.size(); ++i) out *= Double(x.shape[i]);
  return index_bytes + 2 * out * call.ElementSize(x);
}

RawCost ScatterCost(const OpCall& call) {
  constexpr Parameter kAccumulate{"accumulate", 3};
  RawCost cost;
  const bool puts = call.IsOneOf({"index_put", "index_put_impl"});
  // Values that are one number have no sizes in PyTorch's labels, so that what is an index is not told.
  if (call.num_tensors() < 3 || (puts && call.tensors_only())) return cost;
  const OpArgument& x = call.tensor(0);
  const OpArgument& index = call.tensor(1);
  const OpArgument& source = call.tensor(puts ? call.num_tensors() - 1 : 2);
  double index_bytes = 0;
  for (size_t i = 1; &call.tensor(i) != &source; ++i) index_bytes += call.IndexBytes(call.tensor(i));
  const bool adds = call.IsOneOf({"scatter_add", "index_add"}) || (puts && call.Number(kAccumulate, 0) != 0);
  const double moved = Elements(call.IsOneOf({"scatter", "scatter_add"}) ? index.shape : source.shape);
  cost.flops = adds ? moved : 0;
  cost.bytes = index_bytes + moved * call.ElementSize(source) + moved * call.ElementSize(x) * (adds ? 2 : 1);
  // Out of place, the rest is copied.
  if (!call.in_place()) cost.bytes += 2 * call.Bytes(x);
  return cost;
}

// (input, mask, source)
double MaskedScatterBytes(const OpCall& call) {
  if (call.num_tensors() < 3) return kUnknownCost;
  const OpArgument& x = call.tensor(0);
  const OpArgument& source = call.tensor(2);
  const double moved = std::min(Elements(x.shape), Elements(source.shape));
  const double scattered =
      MaskBytes(call.tensor(1)) + moved * (call.ElementSize(source) + call.ElementSize(x));
  return call.in_place() ? scattered : scattered + 2 * call.Bytes(x);
}

}  // namespace

std::optional<RawCost> EmbeddingCost(const OpCall& call, OpPass pass) {
  if (!call.IsOneOf({"embedding", "embedding_dense"})) return std::nullopt;
  RawCost cost;
  if (call.num_tensors() < 2) return cost;
  if (call.name() == "embedding_dense") {  // (grad_output, indices, num_weights, ...)
    const OpArgument& dy = call.tensor(0);
    const double rows = call.Number({"num_weights", 2}, kUnknownCost);
    if (dy.shape.empty()) return cost;
    cost.flops = Elements(dy.shape);
    cost.bytes = call.IndexBytes(call.tensor(1)) + call.Bytes(dy) +
                 rows * Double(dy.shape.back()) * call.ElementSize(dy);
    return cost;
  }
  // torch.nn.functional has the indices first, ATen the table.
  const OpArgument* table = call.Tensor({"weight", 0});
  const OpArgument* indices = call.Tensor({call.Tensor({"input"}) != nullptr ? "input" : "indices", 1});
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

std::vector<std::string_view> MovementOpNames() {
  std::vector<std::string_view> names;
  for (const MovementOp& op : kMovementOps) names.push_back(op.name);
  return names;
}

std::optional<RawCost> MovementCost(const OpCall& call, OpPass pass) {
  const MovementOp* const op = FindRow(kMovementOps, call.name());
  if (op == nullptr) return std::nullopt;
  RawCost cost;
  // slice_backward fills a tensor where slice makes a view.
  if (IsBackward(call, pass)) return cost;
  if (op->kind == Movement::kNothing) {
    cost.flops = cost.bytes = 0;
    return cost;
  }
  if (op->kind == Movement::kCreate) {
    cost.flops = 0;
    cost.bytes = CreatedBytes(call, *op);
    return cost;
  }
  if (call.num_tensors() == 0) return cost;
  const OpArgument& x = call.tensor(0);
  const bool has_second = call.num_tensors() > 1;
  cost.flops = 0;
  switch (op->kind) {
    case Movement::kNothing:
    case Movement::kCreate:
      break;
    case Movement::kCopy:
      cost.bytes = call.Bytes(x) + call.Bytes(op->name == "copy" && has_second ? call.tensor(1) : x);
      break;
    case Movement::kConvert:
      cost.bytes = call.Bytes(x) + ConvertedBytes(call, *op);
      break;
    case Movement::kFill:
      cost.bytes = call.Bytes(x);
      break;
    case Movement::kConcatenate:
      cost.bytes = 2 * call.SumOfBytes();
      break;
    case Movement::kGather:
      if (has_second) {
        const OpArgument& index = call.tensor(1);
        cost.bytes = call.IndexBytes(index) + 2 * Elements(index.shape) * call.ElementSize(x);
      }
      break;
    case Movement::kIndexSelect:
      if (has_second) cost.bytes = IndexSelectBytes(call);
      break;
    case Movement::kIndex:
      if (has_second) cost.bytes = IndexedBytes(call);
      break;
    case Movement::kScatter:
      return ScatterCost(call);
    case Movement::kMaskedSelect:
      if (has_second) cost.bytes = call.Bytes(x) + MaskBytes(call.tensor(1));
      break;
    case Movement::kMaskedScatter:
      cost.bytes = MaskedScatterBytes(call);
      break;
    case Movement::kNonzero:
      cost.flops = Elements(x.shape);
      cost.bytes = call.Bytes(x);
      break;
  }
  return cost;
}

std::optional<RawCost> CollectiveCost(const OpCall& call, OpPass) {
  std::string name = call.name();
  if (name.substr(0, 4) == "nccl") name = name.substr(4);
  name.erase(std::remove(name.begin(), name.end(), '_'), name.end());
  enum { kAllReduce, kPart, kWhole } kind;
  const bool scatters = name.substr(0, 13) == "reducescatter";
  const bool reduces = name.substr(0, 9) == "allreduce" || scatters || name == "reduce";
  if (name.substr(0, 9) == "allreduce") {
    kind = kAllReduce;
  } else if (scatters || name.substr(0, 9) == "allgather" || name.substr(0, 8) == "alltoall") {
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
    if (std::isnan(ranks)) ranks = call.Number({attribute}, kUnknownCost);
  }
  double elements = Elements(largest->shape);
  cost.message_bytes = call.Bytes(*largest);
  if (name == "allreducecoalesced") {
    // Each of its tensors is a message of its own.
    elements = 0;
    for (const OpArgument* tensor : call.tensors()) elements += Elements(tensor->shape);
    cost.message_bytes = call.SumOfBytes();
  } else if (name.substr(0, 9) == "allgather" && call.num_tensors() == 1) {
    // Only a rank's own part is told.
    cost.message_bytes *= ranks;
  }
  const double share = ranks > 0 ? (ranks - 1) / ranks : kUnknownCost;
  cost.bus_bytes = cost.message_bytes * (kind == kAllReduce ? 2 * share : kind == kPart ? share : 1);
  cost.bytes = cost.bus_bytes;
  cost.flops = reduces ? elements * share : 0;
  return cost;
}

}  // namespace ott
