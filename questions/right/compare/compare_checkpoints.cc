#include "ott/questions/right/compare/compare_checkpoints.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/digest/digest.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/questions/right/layout/tree_layout.h"

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

// What wrappers put in front of each parameter's name.
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
  if (HasTensors(state)) {
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
  return Value(std::move(map));
}

// Takes prefixes from the weights of a side as long as that makes more names agree.
void AlignWeights(const char* side, Value* weights, const Value& others, std::vector<std::string>* notes) {
  const std::set<std::string> other_names = NamesOf(others);
  const auto num_common = [&](const Value& value) {
    const std::set<std::string> names = NamesOf(value);
    return std::count_if(names.begin(), names.end(),
                         [&](const std::string& name) { return other_names.count(name) != 0; });
  };
  for (const char* const prefix : kWrapperPrefixes) {
    std::optional<Value> stripped = WithoutPrefix(*weights, prefix);
    if (!stripped.has_value() || num_common(*stripped) <= num_common(*weights)) continue;
    notes->push_back(absl::StrCat(prefix, " was left out of the names of the weights of the ", side));
    *weights = *std::move(stripped);
  }
}

void AlignNames(Value* reference, Value* current, std::vector<std::string>* notes) {
  if (NamesOf(*reference) == NamesOf(*current) || !reference->is_map() || !current->is_map()) return;
  if (!HasTensors(*reference) || !HasTensors(*current)) {
    *reference = WithNamesOfOurs(*reference, "reference", notes);
    *current = WithNamesOfOurs(*current, "current", notes);
    // A side that is a model within a model: {"model": {"state_dict": ...}} is not undone.
  } else {
    AlignWeights("reference", reference, *current, notes);
    AlignWeights("current", current, *reference, notes);
    return;
  }
  Value* const weights = reference->map().Find("model");
  Value* const others = current->map().Find("model");
  if (weights == nullptr || others == nullptr || !weights->is_map() || !others->is_map()) return;
  AlignWeights("reference", weights, *others, notes);
  AlignWeights("current", others, *weights, notes);
}

// Tensors by path. Those in lists, too.
void ListInto(const std::string& path, const Value& value, std::map<std::string, const Tensor*>* tensors) {
  if (value.is_tensor()) tensors->emplace(path, &value.tensor());
  if (value.is_map()) {
    for (const auto& [name, child] : value.map()) ListInto(JoinPath(path, name), child, tensors);
  }
  if (value.is_list()) {
    for (size_t i = 0; i < value.list().size(); ++i) {
      ListInto(JoinPath(path, absl::StrCat(i)), value.list()[i], tensors);
    }
  }
}

// Says of tensors that differ which other tensor of the reference they are.
class Recognizer {
 public:
  Recognizer(const Value& reference, const Value& current) {
    ListInto("", reference, &reference_);
    ListInto("", current, &current_);
  }

  void Explain(std::vector<NamedComparison>* results) {
    std::vector<NamedComparison*> failures;
    for (NamedComparison& result : *results) {
      const CompareStatus status = result.comparison.status;
      if (status != CompareStatus::kMismatch && status != CompareStatus::kShapeDiffers &&
          status != CompareStatus::kExtra) {
        continue;
      }
      const auto found = current_.find(result.path);
      if (found == current_.end() || !IsWorthIt(*found->second)) continue;
      if (failures.size() == kMaxExplained) break;
      failures.push_back(&result);
    }
    if (failures.empty()) return;
    std::map<std::string, std::string> by_digest;
    for (const NamedComparison& result : *results) {
      const auto found = reference_.find(result.path);
      const bool is_candidate = !Passes(result.comparison.status) && found != reference_.end();
      if (!is_candidate || !IsWorthIt(*found->second) || by_digest.size() > kMaxExplained) continue;
      if (const std::optional<std::string> digest = DigestOf(*found->second))
        by_digest[*digest] = result.path;
    }
    for (NamedComparison* const failure : failures) Explain(by_digest, failure);
  }

 private:
  // What is looked at beyond the comparison is read once more.
  static constexpr size_t kMaxExplained = 200;
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;

  // Scalars and small constants are equal by chance.
  static bool IsWorthIt(const Tensor& tensor) {
    return tensor.view.num_elements() >= 2 && tensor.view.num_bytes() <= kMaxBytes;
  }

  static std::optional<std::string> DigestOf(const Tensor& tensor) {
    const absl::StatusOr<Tensor> gathered = Gathered(tensor);
    if (!gathered.ok()) return std::nullopt;
    const absl::StatusOr<TensorDigest> digest = ComputeDigest(gathered->view);
    DropPages(tensor, 0, tensor.view.num_elements());
    return digest.ok() ? std::optional<std::string>(digest->root.ToString()) : std::nullopt;
  }

  void Explain(const std::map<std::string, std::string>& by_digest, NamedComparison* failure) const {
    const Tensor& tensor = *current_.at(failure->path);
    const auto add = [failure](const std::string& what) {
      absl::StrAppend(&failure->comparison.detail, failure->comparison.detail.empty() ? "" : "; ", what);
    };
    if (const std::optional<std::string> digest = DigestOf(tensor)) {
      const auto found = by_digest.find(*digest);
      if (found != by_digest.end() && found->second != failure->path) {
        return add(absl::StrCat("it is, bit for bit, ", found->second, " of the reference"));
      }
    }
    const auto own = reference_.find(failure->path);
    if (own == reference_.end() || tensor.view.shape().size() != 2) return;
    const absl::StatusOr<Tensor> gathered = Gathered(*own->second);
    if (!gathered.ok()) return;
    const absl::StatusOr<TensorView> transposed = PermuteAxes(gathered->view, {1, 0});
    if (!transposed.ok() || transposed->shape() != tensor.view.shape()) return;
    TensorCompareOptions options;
    options.tolerance.bitwise = true;
    const TensorComparison comparison =
        CompareTensors(Tensor{*transposed, gathered->owner, gathered->file_backed}, tensor, options);
    if (comparison.status == CompareStatus::kBitwiseEqual) add("it is that of the reference, transposed");
  }

  std::map<std::string, const Tensor*> reference_;
  std::map<std::string, const Tensor*> current_;
};

}  // namespace

StateKind StateKindOfResult(const NamedComparison& result) {
  const bool is_tensor = !result.comparison.shape.empty() || result.comparison.detail == "a tensor";
  return StateKindOf(result.path, is_tensor);
}

absl::StatusOr<CheckpointComparison> CompareCheckpoints(const std::string& reference_path,
                                                        const std::string& current_path,
                                                        CompareOptions options, const Layout* names) {
  OTT_ASSIGN_OR_RETURN(Checkpoint reference, ReadCheckpoint(reference_path));
  OTT_ASSIGN_OR_RETURN(Checkpoint current, ReadCheckpoint(current_path));
  CheckpointComparison result;
  if (reference.format != current.format) {
    result.notes.push_back(
        absl::StrCat("the reference is ", reference.format, ", the current ", current.format));
  }
  if (names == nullptr) {
    AlignNames(&reference.state, &current.state, &result.notes);
  } else {
    for (const auto& [side, run, checkpoint] :
         {std::tuple("reference", &names->a(), &reference), {"current", &names->b(), &current}}) {
      std::vector<std::string> problems;
      RunLayout layout = *run;
      layout.mutable_tensors()->MergeFrom(names->tensors());
      OTT_ASSIGN_OR_RETURN(checkpoint->state, crosscheck::ToWholes(checkpoint->state, layout, &problems));
      for (const std::string& problem : problems) {
        result.problems.push_back(absl::StrCat("names of the ", side, ": ", problem));
      }
    }
  }
  options.tensors.accept_rounded = !options.tensors.tolerance.bitwise;
  result.results = CompareTrees(reference.state, current.state, options);
  std::vector<NamedComparison>& results = result.results.results;
  Recognizer(reference.state, current.state).Explain(&results);
  std::stable_sort(results.begin(), results.end(), [](const NamedComparison& a, const NamedComparison& b) {
    return StateKindOfResult(a) < StateKindOfResult(b);
  });
  std::map<std::string, int64_t> rounded;
  for (const NamedComparison& named : results) {
    if (named.comparison.rounded && Passes(named.comparison.status)) ++rounded[named.comparison.detail];
  }
  for (const auto& [what, count] : rounded) {
    result.notes.push_back(absl::StrCat(count, count == 1 ? " tensor: " : " tensors: ", what));
  }
  return result;
}

}  // namespace ott::compare
