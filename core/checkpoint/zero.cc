#include "ott/core/checkpoint/zero.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott {
namespace {

// Null if a name is missing on the way.
const Value* Find(const Value& tree, std::initializer_list<std::string_view> names) {
  const Value* at = &tree;
  for (const std::string_view name : names) {
    if (at == nullptr || !at->is_map()) return nullptr;
    at = at->map().Find(name);
  }
  return at;
}

absl::Status Unexpected(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("ZeRO's partitions have ", std::string(what)));
}

// A parameter of a group, and where it begins in the flat buffer of stages 1 and 2.
struct Parameter {
  std::string name;
  Dims shape;
  int64_t num_elements = 0;
  int64_t begin = 0;
};

absl::StatusOr<std::vector<Parameter>> ParametersOf(const Value& shapes) {
  if (!shapes.is_map()) return Unexpected("param_shapes that are no maps");
  std::vector<Parameter> parameters;
  int64_t begin = 0;
  for (const auto& [name, shape] : shapes.map()) {
    Parameter& parameter = parameters.emplace_back();
    parameter.name = name;
    if (!shape.is_list()) return Unexpected(absl::StrCat("no shape of '", name, "'"));
    for (const Value& extent : shape.list()) {
      if (extent.kind() != Value::Kind::kInt) return Unexpected(absl::StrCat("no shape of '", name, "'"));
      parameter.shape.push_back(extent.int_value());
    }
    OTT_ASSIGN_OR_RETURN(parameter.num_elements, CheckedNumBytes(DType::kUInt8, parameter.shape));
    parameter.begin = begin;
    if (__builtin_add_overflow(begin, parameter.num_elements, &begin)) return Unexpected("too many elements");
  }
  return parameters;
}

// One flat tensor of each rank.
struct FlatTensor {
  std::vector<Tensor> of_rank;

  // The elements [begin, begin + size) of a rank's.
  absl::StatusOr<TensorPart> Slice(size_t rank, int64_t begin, int64_t size, int64_t offset) const {
    const Tensor& flat = of_rank[rank];
    if (begin < 0 || size < 0 || begin > flat.view.num_elements() - size) {
      return Unexpected(
          absl::StrCat(flat.view.num_elements(), " elements on rank ", rank, ", but need ", begin + size));
    }
    const char* const data = static_cast<const char*>(flat.view.data()) + begin * SizeOf(flat.view.dtype());
    return TensorPart{{TensorView(data, flat.view.dtype(), {size}), flat.owner, flat.file_backed}, {offset}};
  }
};

// All ranks hold ranges of one buffer, in which the parameters follow each other.
absl::StatusOr<Tensor> JoinRanges(const FlatTensor& flat, const Parameter& parameter) {
  std::vector<TensorPart> parts;
  int64_t first = 0;
  for (size_t rank = 0; rank < flat.of_rank.size(); ++rank) {
    const int64_t last = first + flat.of_rank[rank].view.num_elements();
    const int64_t begin = std::max(first, parameter.begin);
    const int64_t end = std::min(last, parameter.begin + parameter.num_elements);
    if (begin < end) {
      OTT_ASSIGN_OR_RETURN(TensorPart part,
                           flat.Slice(rank, begin - first, end - begin, begin - parameter.begin));
      parts.push_back(std::move(part));
    }
    first = last;
  }
  return ScatteredElements::Join(flat.of_rank[0].view.dtype(), parameter.shape, {parameter.num_elements},
                                 std::move(parts));
}

// Each rank holds an equal range of each parameter, at *begin, which is moved behind it.
absl::StatusOr<Tensor> JoinShares(const FlatTensor& flat, const Parameter& parameter, int64_t begin) {
  const auto num_ranks = static_cast<int64_t>(flat.of_rank.size());
  const int64_t share = (parameter.num_elements + num_ranks - 1) / num_ranks;
  std::vector<TensorPart> parts;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    const int64_t offset = rank * share;
    const int64_t size = std::min(share, parameter.num_elements - offset);
    if (size <= 0) break;
    OTT_ASSIGN_OR_RETURN(TensorPart part, flat.Slice(rank, begin, size, offset));
    parts.push_back(std::move(part));
  }
  return ScatteredElements::Join(flat.of_rank[0].view.dtype(), parameter.shape, {parameter.num_elements},
                                 std::move(parts));
}

class Joiner {
 public:
  explicit Joiner(const std::vector<Value>& partitions) {
    for (const Value& partition : partitions) states_.push_back(Find(partition, {"optimizer_state_dict"}));
  }

  absl::StatusOr<Value> Join(Value model) {
    const Value* const shapes = Find(model, {"param_shapes"});
    if (shapes == nullptr || !shapes->is_list()) return Unexpected("no param_shapes");
    for (const Value* const state : states_) {
      if (state == nullptr || !state->is_map()) return Unexpected("no optimizer_state_dict");
    }
    is_stage_3_ = states_[0]->map().Find("fp32_flat_groups") != nullptr;
    Value::Map of_parameter;
    std::vector<Value::List> names;
    for (size_t group = 0; group < shapes->list().size(); ++group) {
      OTT_ASSIGN_OR_RETURN(const std::vector<Parameter> parameters, ParametersOf(shapes->list()[group]));
      OTT_RETURN_IF_ERROR(JoinGroup(group, parameters, of_parameter));
      Value::List& of_group = names.emplace_back();
      for (const Parameter& parameter : parameters) of_group.emplace_back(parameter.name);
    }
    if (is_stage_3_) {
      // Stage 3 leaves only empty tensors in the file of the model; the optimizer has the weights.
      Value::Map weights;
      for (const auto& [name, kept] : of_parameter) weights.Insert(name, *Find(kept, {"fp32"}));
      Value* const module = model.map().Find("module");
      if (module != nullptr) *module = std::move(weights);
    }
    ValueMap optimizer{{"state", std::move(of_parameter)}};
    if (const Value* const groups = Find(*states_[0], {OptimizerName(), "param_groups"})) {
      optimizer.Insert("param_groups", WithNames(*groups, std::move(names)));
    }
    for (const char* const scaler : {"loss_scaler", "dynamic_loss_scale", "overflow"}) {
      if (const Value* const value = states_[0]->map().Find(scaler)) optimizer.Insert(scaler, *value);
    }
    if (Value* const own = model.map().Find("optimizer")) {
      *own = std::move(optimizer);
    } else {
      model.map().Insert("optimizer", std::move(optimizer));
    }
    return model;
  }

 private:
  // nullopt if a rank has none.
  std::optional<FlatTensor> FlatOf(const std::vector<const Value*>& of_rank) const {
    FlatTensor flat;
    for (const Value* const value : of_rank) {
      if (value == nullptr || !value->is_tensor() || value->tensor().view.shape().size() != 1 ||
          value->tensor().scattered != nullptr) {
        return std::nullopt;
      }
      flat.of_rank.push_back(value->tensor());
    }
    return flat;
  }

  const char* OptimizerName() const { return is_stage_3_ ? "optimizer_state_dict" : "base_optimizer_state"; }

  // The groups, whose one flat parameter stands for those of these names.
  static Value WithNames(Value groups, std::vector<Value::List> names) {
    for (size_t i = 0; groups.is_list() && i < std::min(groups.list().size(), names.size()); ++i) {
      Value& group = groups.list()[i];
      Value* const params = group.is_map() ? group.map().Find("params") : nullptr;
      if (params != nullptr) *params = std::move(names[i]);
    }
    return groups;
  }

  static const Value* ItemOrNull(const Value* list, size_t i) {
    return list != nullptr && list->is_list() && i < list->list().size() ? &list->list()[i] : nullptr;
  }

  absl::Status JoinGroup(size_t group, const std::vector<Parameter>& parameters, Value::Map& of_parameter) {
    std::vector<const Value*> masters, states;
    for (const Value* const state : states_) {
      masters.push_back(ItemOrNull(
          state->map().Find(is_stage_3_ ? "fp32_flat_groups" : "single_partition_of_fp32_groups"), group));
      const Value* const base = Find(*state, {OptimizerName(), "state"});
      const std::string key = absl::StrCat(group);
      states.push_back(base != nullptr && base->is_map() ? base->map().Find(key) : nullptr);
    }
    const std::optional<FlatTensor> master = FlatOf(masters);
    if (!master.has_value()) return Unexpected(absl::StrCat("no flat master weights of group ", group));
    int64_t begin = 0;
    const auto num_ranks = static_cast<int64_t>(states_.size());
    for (const Parameter& parameter : parameters) {
      ValueMap kept;
      OTT_ASSIGN_OR_RETURN(Tensor tensor, JoinOne(*master, parameter, begin));
      kept.Insert("fp32", std::move(tensor));
      if (states[0] != nullptr && states[0]->is_map()) {
        for (const auto& [name, value] : states[0]->map()) {
          std::vector<const Value*> of_rank;
          for (const Value* const state : states) {
            of_rank.push_back(state != nullptr && state->is_map() ? state->map().Find(name) : nullptr);
          }
          const std::optional<FlatTensor> flat = FlatOf(of_rank);
          if (!flat.has_value()) {
            kept.Insert(name, value);
            continue;
          }
          OTT_ASSIGN_OR_RETURN(Tensor joined, JoinOne(*flat, parameter, begin));
          kept.Insert(name, std::move(joined));
        }
      }
      begin += (parameter.num_elements + num_ranks - 1) / num_ranks;
      of_parameter.Insert(parameter.name, std::move(kept));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> JoinOne(const FlatTensor& flat, const Parameter& parameter, int64_t begin) const {
    absl::StatusOr<Tensor> joined =
        is_stage_3_ ? JoinShares(flat, parameter, begin) : JoinRanges(flat, parameter);
    return joined.ok() ? joined : WithContext(absl::StrCat("'", parameter.name, "'"), joined.status());
  }

  std::vector<const Value*> states_;
  bool is_stage_3_ = false;
};

}  // namespace

absl::StatusOr<Value> JoinZeroPartitions(Value model, const std::vector<Value>& partitions) {
  if (!model.is_map() || partitions.empty()) return Unexpected("no files of the optimizer");
  return Joiner(partitions).Join(std::move(model));
}

}  // namespace ott
