#include "ott/core/checkpoint/zero.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
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
    if (begin > flat.view.num_elements() - size) {
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

// Each rank holds an equal range of each parameter, from `begin` of its flat buffer on.
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

// Bit for bit the same elements.
bool AreSame(const Tensor& a, const Tensor& b) {
  if (a.view.dtype() != b.view.dtype() || a.view.shape() != b.view.shape()) return false;
  if (a.view.num_elements() == 0) return true;
  const absl::StatusOr<Tensor> gathered_a = Gathered(a), gathered_b = Gathered(b);
  if (!gathered_a.ok() || !gathered_b.ok()) return false;
  const absl::StatusOr<Tensor> copy_a = CloneToHost(gathered_a->view), copy_b = CloneToHost(gathered_b->view);
  return copy_a.ok() && copy_b.ok() &&
         std::memcmp(copy_a->view.data(), copy_b->view.data(), copy_a->view.num_bytes()) == 0;
}

// Returns what of `other` is not as in `first`, a null for what it lacks; nullopt if all of it is.
std::optional<Value> DifferenceTo(const Value* first, const Value& other) {
  if (first == nullptr || first->kind() != other.kind()) return other;
  bool is_same = true;
  switch (other.kind()) {
    case Value::Kind::kMap: {
      Value::Map map;
      for (const auto& [name, child] : other.map()) {
        if (std::optional<Value> difference = DifferenceTo(first->map().Find(name), child))
          map.Insert(name, *std::move(difference));
      }
      for (const auto& [name, child] : first->map()) {
        if (other.map().Find(name) == nullptr) map.Insert(name, Value());
      }
      return map.empty() ? std::nullopt : std::optional<Value>(std::move(map));
    }
    case Value::Kind::kList:
      is_same = first->list().size() == other.list().size();
      for (size_t i = 0; is_same && i < other.list().size(); ++i)
        is_same = !DifferenceTo(&first->list()[i], other.list()[i]).has_value();
      break;
    case Value::Kind::kString:
      is_same = first->string_value() == other.string_value();
      break;
    default: {
      // Numbers are compared as tensors, so that NaN is itself.
      const std::optional<Tensor> a = AsTensor(*first), b = AsTensor(other);
      is_same = !a.has_value() || AreSame(*a, *b);
    }
  }
  return is_same ? std::nullopt : std::optional<Value>(other);
}

class Joiner {
 public:
  Joiner(const std::vector<Value>& models, const std::vector<Value>& partitions)
      : models_(models), others_(partitions.size()) {
    for (const Value& partition : partitions) states_.push_back(Find(partition, {"optimizer_state_dict"}));
  }

  absl::StatusOr<Value> Join() {
    Value model = WithoutParts(models_[0]);
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
    if (Value* const module = model.map().Find("module"); is_stage_3_ && module != nullptr) {
      OTT_ASSIGN_OR_RETURN(*module, JoinWeights(*module, of_parameter));
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
    for (size_t rank = 0; rank < states_.size(); ++rank) {
      if (const Value* const groups = Find(*states_[rank], {OptimizerName(), "param_groups"}))
        others_[rank].Insert("param_groups", *groups);
    }
    AddDifferencesOfRanks(model.map());
    return model;
  }

 private:
  // Stage 3 leaves empty tensors in the files of the model in place of weights: the optimizer has those that
  // are trained, and each file a part of those that are not.
  absl::StatusOr<Value> JoinWeights(const Value& module, const Value::Map& of_parameter) const {
    const Value* const shapes = Find(models_[0], {"frozen_param_shapes"});
    Value::Map frozen;
    if (shapes != nullptr && shapes->is_map()) {
      OTT_ASSIGN_OR_RETURN(const std::vector<Parameter> parameters, ParametersOf(*shapes));
      for (const Parameter& parameter : parameters) {
        std::vector<const Value*> fragments;
        for (const Value& model : models_)
          fragments.push_back(Find(model, {"frozen_param_fragments", parameter.name}));
        const std::optional<FlatTensor> flat = FlatOf(fragments);
        if (!flat.has_value()) return Unexpected(absl::StrCat("no fragments of '", parameter.name, "'"));
        OTT_ASSIGN_OR_RETURN(Tensor joined, JoinOne(*flat, parameter, /*begin=*/0));
        frozen.Insert(parameter.name, std::move(joined));
      }
    }
    const auto weight_of = [&](const std::string& name) -> const Value* {
      const Value* const trained = of_parameter.Find(name);
      return trained != nullptr ? Find(*trained, {"fp32"}) : frozen.Find(name);
    };
    Value::Map weights;
    for (const auto& [name, value] : module.is_map() ? module.map() : Value::Map()) {
      // Tied parameters are there once.
      const Value* const tied_to = Find(models_[0], {"shared_params", name});
      const bool is_tied = tied_to != nullptr && tied_to->kind() == Value::Kind::kString;
      const Value* const weight = weight_of(is_tied ? tied_to->string_value() : name);
      weights.Insert(name, weight != nullptr ? *weight : value);
    }
    for (const auto& [name, kept] : of_parameter) weights.Insert(name, *Find(kept, {"fp32"}));
    return Value(std::move(weights));
  }

  // Without what says how weights are joined; the first rank alone knows it all.
  static Value WithoutParts(const Value& model) {
    Value::Map map;
    for (const auto& [name, value] : model.map()) {
      if (name.rfind("frozen_param_", 0) != 0 && name != "shared_params") map.Insert(name, value);
    }
    return map;
  }

  // Keeps as "rank_N" what a rank's files hold other than those of rank 0, beyond what was joined.
  void AddDifferencesOfRanks(Value::Map& model) const {
    for (size_t rank = 1; rank < states_.size(); ++rank) {
      Value::Map differences;
      if (rank < models_.size()) {
        const Value first = WithoutParts(models_[0]);
        if (std::optional<Value> other = DifferenceTo(&first, WithoutParts(models_[rank])))
          differences = other->map();
      }
      const Value first = others_[0];
      if (std::optional<Value> other = DifferenceTo(&first, others_[rank]))
        differences.Insert("optimizer_state_dict", *std::move(other));
      if (!differences.empty()) model.Insert(absl::StrCat("rank_", rank), std::move(differences));
    }
  }

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
      const Value* const base = Find(*state, {OptimizerName()});
      if (base != nullptr && base->is_list()) {
        // An elastic checkpoint's, which has no padding either.
        states.push_back(ItemOrNull(base, group));
        if (states.back() == nullptr || !states.back()->is_map())
          return Unexpected(absl::StrCat("no map of what the optimizer keeps of group ", group));
      } else {
        states.push_back(Find(*state, {OptimizerName(), "state", absl::StrCat(group)}));
      }
    }
    // An entry that rank 0 lacks cannot be joined; it is kept beside the state, as that of its rank.
    for (size_t rank = 1; rank < states.size(); ++rank) {
      if (states[rank] == nullptr || !states[rank]->is_map()) continue;
      for (const auto& [name, value] : states[rank]->map()) {
        if (states[0] == nullptr || !states[0]->is_map() || states[0]->map().Find(name) == nullptr)
          others_[rank].Insert(absl::StrCat("state.", group, ".", name), value);
      }
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
            for (size_t rank = 0; rank < states.size(); ++rank) {
              if (of_rank[rank] != nullptr)
                others_[rank].Insert(absl::StrCat("state.", group, ".", name), *of_rank[rank]);
            }
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

  const std::vector<Value>& models_;
  std::vector<const Value*> states_;
  // By rank, what the optimizer keeps of each group that is no part of a flat buffer.
  std::vector<Value::Map> others_;
  bool is_stage_3_ = false;
};

}  // namespace

absl::StatusOr<Value> JoinZeroPartitions(const std::vector<Value>& models,
                                         const std::vector<Value>& partitions) {
  if (models.empty() || partitions.empty()) return Unexpected("no files of the optimizer");
  for (const Value& model : models) {
    if (!model.is_map()) return Unexpected("a file of the model that is no map");
  }
  return Joiner(models, partitions).Join();
}

}  // namespace ott
