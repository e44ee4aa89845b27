#include "ott/questions/right/compare/checkpoint_names.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ott::compare {
namespace {

// The names that frameworks have for the same part of a training's state; the first is ours.
const std::vector<std::vector<std::string>>& Synonyms() {
  static const auto& synonyms = *new std::vector<std::vector<std::string>>{
      {"model", "state_dict", "model_state_dict", "module", "net", "network", "weights", "model_state"},
      {"optimizer", "optimizer_state_dict", "optimizer_states", "optim", "optimizer_state"},
      {"scheduler", "lr_scheduler", "lr_schedulers", "scheduler_state_dict", "lr_scheduler_state_dict",
       "opt_param_scheduler"},
      {"scaler", "grad_scaler", "scaler_state_dict"},
      {"rng_state", "rng", "random_states_0", "random_state"},
  };
  return synonyms;
}

// Wrappers put these in front of each parameter's name.
constexpr const char* kWrapperPrefixes[] = {"module.", "_orig_mod.", "_forward_module.", "model."};

std::set<std::string> NamesOf(const Value& value) {
  std::set<std::string> names;
  if (value.is_map()) {
    for (const auto& [name, child] : value.map()) names.insert(name);
  }
  return names;
}

bool HasTensors(const Value& value) {
  return value.is_map() && std::any_of(value.map().begin(), value.map().end(),
                                       [](const auto& entry) { return entry.second.is_tensor(); });
}

bool HasModel(const Value& value) {
  const std::vector<std::string>& names = Synonyms()[0];
  return value.is_map() && std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           const Value* const model = value.map().Find(name);
           return model != nullptr && model->is_map();
         });
}

// The first synonym of a name; the name itself where it has none.
std::string Canonical(const std::string& name) {
  for (const std::vector<std::string>& group : Synonyms()) {
    if (std::find(group.begin(), group.end(), name) != group.end()) return group[0];
  }
  return name;
}

// The state with our names at the top. A map of tensors by itself is a model.
Value WithNamesOfOurs(const Value& state, const char* side, std::vector<std::string>* notes) {
  if (!state.is_map()) return state;
  if (HasTensors(state) && !HasModel(state)) {
    notes->push_back(absl::StrCat("all of the ", side, " was taken for model"));
    return ValueMap{{"model", state}};
  }
  ValueMap map;
  for (const auto& [name, child] : state.map()) {
    std::string ours = Canonical(name);
    const bool taken = map.Find(ours) != nullptr || (ours != name && state.map().Find(ours) != nullptr);
    if (taken) ours = name;
    const bool one_of_list = ours != name && child.is_list() && child.list().size() == 1;
    if (ours != name) {
      notes->push_back(
          absl::StrCat(name, one_of_list ? ".0" : "", " of the ", side, " was taken for ", ours));
    }
    map.Insert(ours, one_of_list ? child.list()[0] : child);
  }
  return map;
}

// The weights without a prefix that all of their names have.
std::optional<Value> WithoutPrefix(const Value& weights, const std::string& prefix) {
  ValueMap map;
  for (const auto& [name, child] : weights.map()) {
    if (name.rfind(prefix, 0) != 0) return std::nullopt;
    map.Insert(name.substr(prefix.size()), child);
  }
  return map.empty() ? std::nullopt : std::optional<Value>(std::move(map));
}

// Weights without so many characters in front of their names.
struct Unwrapped {
  std::string prefix;
  Value weights;
};

// The weights as they are, then without the prefix of each wrapper, from the outermost on.
std::vector<Unwrapped> Unwrap(const Value& weights) {
  std::vector<Unwrapped> all = {{"", weights}};
  for (size_t before = 0; before < all.size(); ++before) {
    for (const char* const prefix : kWrapperPrefixes) {
      std::optional<Value> inner = WithoutPrefix(all[before].weights, prefix);
      if (!inner.has_value()) continue;
      all.push_back({all[before].prefix + prefix, *std::move(inner)});
      break;
    }
  }
  return all;
}

// Takes prefixes from the weights of both sides, as few as make the most names agree.
void AlignWeights(Value* reference, Value* current, std::vector<std::string>* notes) {
  std::vector<Unwrapped> references = Unwrap(*reference), currents = Unwrap(*current);
  size_t best_reference = 0, best_current = 0;
  int64_t most = 0;
  for (size_t num_prefixes = 0; num_prefixes + 1 < references.size() + currents.size(); ++num_prefixes) {
    for (size_t i = 0; i <= num_prefixes && i < references.size(); ++i) {
      const size_t j = num_prefixes - i;
      if (j >= currents.size()) continue;
      const std::set<std::string> a = NamesOf(references[i].weights), b = NamesOf(currents[j].weights);
      const auto num_common =
          std::count_if(a.begin(), a.end(), [&](const std::string& name) { return b.count(name) != 0; });
      if (num_common <= most) continue;
      most = num_common;
      best_reference = i;
      best_current = j;
    }
  }
  for (const auto& [side, best, weights] : {std::tuple("reference", &references[best_reference], reference),
                                            {"current", &currents[best_current], current}}) {
    if (best->prefix.empty()) continue;
    notes->push_back(absl::StrCat(best->prefix, " was left out of the names of the weights of the ", side));
    *weights = std::move(best->weights);
  }
}

// The map of a name in a state; null where there is none.
Value* MapIn(Value* state, const std::string& name) {
  Value* const found = state->is_map() ? state->map().Find(name) : nullptr;
  return found != nullptr && found->is_map() ? found : nullptr;
}

void AlignTop(Value* reference, Value* current, std::vector<std::string>* notes) {
  if (!reference->is_map() || !current->is_map()) return;
  const bool are_models =
      HasTensors(*reference) && !HasModel(*reference) && HasTensors(*current) && !HasModel(*current);
  if (are_models) return AlignWeights(reference, current, notes);
  if (NamesOf(*reference) != NamesOf(*current)) {
    // A side that is a model within a model: {"model": {"state_dict": ...}} is not undone.
    *reference = WithNamesOfOurs(*reference, "reference", notes);
    *current = WithNamesOfOurs(*current, "current", notes);
  }
  for (const std::string& name : Synonyms()[0]) {
    Value* const weights = MapIn(reference, name);
    Value* const others = MapIn(current, name);
    if (weights != nullptr && others != nullptr) AlignWeights(weights, others, notes);
  }
}

// The parameters of an optimizer's groups, group by group, as texts: its names, or its numbers.
std::vector<std::vector<std::string>> GroupsOf(Value* optimizer) {
  std::vector<std::vector<std::string>> groups;
  const Value* const list = optimizer->map().Find("param_groups");
  if (list == nullptr || !list->is_list()) return groups;
  for (const Value& group : list->list()) {
    std::vector<std::string>& names = groups.emplace_back();
    const Value* const params = group.is_map() ? group.map().Find("params") : nullptr;
    if (params == nullptr || !params->is_list()) return {};
    for (const Value& param : params->list()) {
      if (param.kind() == Value::Kind::kString) names.push_back(param.string_value());
      if (param.kind() == Value::Kind::kInt) names.push_back(absl::StrCat(param.int_value()));
    }
  }
  return groups;
}

bool AreNumbers(const std::vector<std::vector<std::string>>& groups) {
  return !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const auto& names) {
    return std::all_of(names.begin(), names.end(), [](const std::string& name) {
      return name.find_first_not_of("0123456789") == name.npos;
    });
  });
}

// Gives an optimizer that goes by numbers the names that the other has at the same places of its groups.
void NameOptimizerState(const char* side, Value* optimizer, Value* other, std::vector<std::string>* notes) {
  const std::vector<std::vector<std::string>> numbers = GroupsOf(optimizer);
  const std::vector<std::vector<std::string>> names = GroupsOf(other);
  Value* const state = optimizer->map().Find("state");
  if (state == nullptr || !state->is_map() || !AreNumbers(numbers) || AreNumbers(names)) return;
  std::map<std::string, std::string> name_of;
  for (size_t group = 0; group < numbers.size(); ++group) {
    if (group >= names.size() || names[group].size() != numbers[group].size()) {
      return notes->push_back(
          absl::StrCat("the optimizer of the ", side, " goes by numbers, which the names ",
                       "of the other cannot be given to: their groups are of other sizes"));
    }
    for (size_t i = 0; i < names[group].size(); ++i) name_of.emplace(numbers[group][i], names[group][i]);
  }
  ValueMap renamed;
  for (const auto& [number, of_parameter] : state->map()) {
    const auto found = name_of.find(number);
    renamed.Insert(found == name_of.end() ? number : found->second, of_parameter);
  }
  *state = std::move(renamed);
  for (size_t group = 0; group < numbers.size(); ++group) {
    Value::List list(names[group].begin(), names[group].end());
    *optimizer->map().Find("param_groups")->list()[group].map().Find("params") = std::move(list);
  }
  notes->push_back(absl::StrCat("the numbers in the optimizer of the ", side,
                                " were taken for the names at the same places of the other's param_groups"));
}

void AlignOptimizers(Value* reference, Value* current, std::vector<std::string>* notes) {
  for (const std::string& name : Synonyms()[1]) {
    Value* const a = MapIn(reference, name);
    Value* const b = MapIn(current, name);
    if (a == nullptr || b == nullptr) continue;
    NameOptimizerState("reference", a, b, notes);
    NameOptimizerState("current", b, a, notes);
  }
}

}  // namespace

void AlignNames(Value* reference, Value* current, std::vector<std::string>* notes) {
  AlignTop(reference, current, notes);
  AlignOptimizers(reference, current, notes);
}

}  // namespace ott::compare
