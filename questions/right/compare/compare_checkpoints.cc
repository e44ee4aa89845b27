#include "ott/questions/right/compare/compare_checkpoints.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/checkpoint/distributed_checkpoint.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/questions/right/compare/checkpoint_pair.h"
#include "ott/questions/right/compare/guess_names.h"

namespace ott::compare {
namespace {

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

using Tensors = std::map<std::string, const Tensor*>;

bool AreSame(const Tensor& a, const Tensor& b) {
  TensorCompareOptions options;
  options.tolerance.bitwise = true;
  return CompareTensors(a, b, options).status == CompareStatus::kBitwiseEqual;
}

// An output layer that one side alone has passes where it is, bit for bit, that side's embedding, which
// agrees with the other side's: only some formats write tied weights twice.
void AcceptTied(const Tensors& reference, const Tensors& current, std::vector<NamedComparison>* results,
                std::vector<std::string>* notes) {
  const auto ends_in = [](const std::string& path, std::string_view end) {
    return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
  };
  const auto is_tied = [&](const NamedComparison& result) {
    const CompareStatus status = result.comparison.status;
    const bool is_output = ends_in(result.path, "lm_head.weight") ||
                           ends_in(result.path, "output_layer.weight") ||
                           ends_in(result.path, "output_layer");
    return is_output && (status == CompareStatus::kMissing || status == CompareStatus::kExtra);
  };
  for (NamedComparison& result : *results) {
    if (!is_tied(result)) continue;
    const bool is_extra = result.comparison.status == CompareStatus::kExtra;
    const Tensors& own = is_extra ? current : reference;
    const auto output = own.find(result.path);
    for (const NamedComparison& other : *results) {
      const auto embedding = own.find(other.path);
      if (output == own.end() || embedding == own.end() || other.path.find("emb") == other.path.npos)
        continue;
      if (!Passes(other.comparison.status) || !AreSame(*output->second, *embedding->second)) continue;
      result.comparison.status = CompareStatus::kEqual;
      notes->push_back(absl::StrCat(result.path, ", which only the ", is_extra ? "current" : "reference",
                                    " has, is bit for bit its ", other.path, ": they are tied"));
      break;
    }
  }
}

// Weights are copied in fewer bits on purpose; a training that goes on with such moments or master weights
// does something else.
void RefuseRounded(std::vector<NamedComparison>* results) {
  for (NamedComparison& result : *results) {
    const StateKind kind = StateKindOfResult(result);
    const bool is_kept_exact = kind == StateKind::kMoments || kind == StateKind::kMasterWeights;
    if (is_kept_exact && result.comparison.rounded && Passes(result.comparison.status))
      result.comparison.status = CompareStatus::kDTypeDiffers;
  }
}

// How many elements Megatron's optimizer has in each of its buckets (dp_reshardable) or, as one object, of
// its ranks (dp_zero_gather_scatter).
std::map<std::string, int64_t> BucketsOf(const Tensors& tensors) {
  std::map<std::string, int64_t> buckets;
  for (const auto& [path, tensor] : tensors) {
    const bool is_of_ranks =
        path.find("optimizer.distributed.dp_group_idx_") != path.npos &&
        (path.find(".bucket_idx_") != path.npos || path.find(".param_state") != path.npos);
    if (is_of_ranks) buckets[path.substr(0, path.rfind('.'))] = tensor->view.num_elements();
  }
  return buckets;
}

// Leaves out the buckets of optimizers. They hold other elements if the number of tensor- or
// pipeline-parallel ranks is another one, which is no difference and no pass.
void LeaveOutBuckets(const Tensors& reference, const Tensors& current, std::vector<NamedComparison>* results,
                     std::vector<std::string>* problems) {
  const auto has_optimizer = [](const Tensors& tensors) {
    return std::any_of(tensors.begin(), tensors.end(), [](const auto& entry) {
      return StateKindOf(entry.first, !entry.second->view.shape().empty()) == StateKind::kMoments;
    });
  };
  if (BucketsOf(reference) == BucketsOf(current) || !has_optimizer(reference) || !has_optimizer(current))
    return;
  const auto depends_on_ranks = [](const NamedComparison& result) {
    const std::string& path = result.path;
    const bool is_one_sided = result.comparison.status == CompareStatus::kMissing ||
                              result.comparison.status == CompareStatus::kExtra;
    return !Passes(result.comparison.status) && path.find("optimizer.") != path.npos &&
           (is_one_sided || path.find(".bucket_idx_") != path.npos ||
            path.find(".param_state") != path.npos || path.find(".per_bucket_numel") != path.npos);
  };
  const auto kept = std::stable_partition(results->begin(), results->end(),
                                          [&](const auto& result) { return !depends_on_ranks(result); });
  if (kept == results->end()) return;
  problems->push_back(absl::StrCat(
      results->end() - kept, " values of the optimizer were not compared, such as ", kept->path,
      ": Megatron's buckets hold them by tensor- and pipeline-parallel rank; ", kFullyReshardable));
  results->erase(kept, results->end());
}

// Megatron writes the steps of the parameters that the first rank happens to hold: those of others are on one
// side alone, and are no difference beside the steps of param_groups.
void LeaveOutStepsOfFirstRank(std::vector<NamedComparison>* results, std::vector<std::string>* notes) {
  const auto is_step_of = [](const NamedComparison& result, const char* what) {
    const std::string& path = result.path;
    return path.find(what) != path.npos && path.substr(path.rfind('.') + 1) == "step";
  };
  const bool have_steps = std::any_of(results->begin(), results->end(), [&](const auto& result) {
    return is_step_of(result, "optimizer.param_groups.") && Passes(result.comparison.status);
  });
  if (!have_steps) return;
  const auto kept = std::stable_partition(results->begin(), results->end(), [&](const auto& result) {
    const CompareStatus status = result.comparison.status;
    return !is_step_of(result, "optimizer.param_state.") ||
           (status != CompareStatus::kMissing && status != CompareStatus::kExtra);
  });
  if (kept == results->end()) return;
  notes->push_back(absl::StrCat(kept->path, " (and ", results->end() - kept - 1,
                                " more) is on one side alone, whose first rank held that parameter"));
  results->erase(kept, results->end());
}

// Collects what passes although it is not the same in every way, as the paths by what is said of them.
class Remarks {
 public:
  // Numbers that are equal may be of other types, and tensors of other strides.
  void AddTypes(const std::string& path, const Value& reference, const Value& current) {
    if (reference.is_map() && current.is_map()) {
      for (const auto& [name, child] : reference.map()) {
        if (const Value* const other = current.map().Find(name))
          AddTypes(JoinPath(path, name), child, *other);
      }
    } else if (reference.is_list() && current.is_list()) {
      const size_t size = std::min(reference.list().size(), current.list().size());
      for (size_t i = 0; i < size; ++i)
        AddTypes(JoinPath(path, absl::StrCat(i)), reference.list()[i], current.list()[i]);
    } else if (reference.is_tensor() && current.is_tensor()) {
      const TensorView& a = reference.tensor().view;
      const TensorView& b = current.tensor().view;
      const bool lie_at_once =
          reference.tensor().scattered == nullptr && current.tensor().scattered == nullptr;
      if (lie_at_once && a.shape() == b.shape() && a.is_contiguous() != b.is_contiguous())
        Add("lies in another order of its dimensions in memory", path);
    } else if (reference.kind() != current.kind()) {
      Add(absl::StrCat("is of type ", std::string(Name(reference.kind())), " in the reference, of type ",
                       std::string(Name(current.kind())), " in the current"),
          path);
    }
  }

  // Notes where requires_grad differs. That is no difference, as it is no part of the elements and many tools
  // change it.
  void AddRequiresGrad(const std::map<std::string, bool>& reference,
                       const std::map<std::string, bool>& current) {
    for (const auto& [path, required] : reference) {
      const auto other = current.find(path);
      if (other == current.end() || other->second != required)
        Add(absl::StrCat("has requires_grad=", required ? "True" : "False", " in the reference alone"), path);
    }
    for (const auto& [path, required] : current) {
      const auto other = reference.find(path);
      if (other == reference.end() || other->second != required)
        Add(absl::StrCat("has requires_grad=", required ? "True" : "False", " in the current alone"), path);
    }
  }

  // Tensors that share their elements may do so on one side alone, so that what is trained differs.
  void AddSharing(const Tensors& reference, const Tensors& current) {
    const std::map<std::string, std::string> first_of_reference = FirstOfEach(reference);
    const std::map<std::string, std::string> first_of_current = FirstOfEach(current);
    for (const auto& [path, first] : first_of_reference) {
      const auto found = first_of_current.find(path);
      if (found == first_of_current.end() || found->second == first) continue;
      const bool is_shared_in_reference = first != path;
      Add(absl::StrCat("shares its elements with ", is_shared_in_reference ? first : found->second,
                       " in the ", is_shared_in_reference ? "reference" : "current", " alone"),
          path);
    }
  }

  void AppendTo(std::vector<std::string>* notes) const {
    for (const auto& [what, paths] : paths_) {
      const size_t more = paths.size() - 1;
      notes->push_back(
          absl::StrCat(paths[0], more > 0 ? absl::StrCat(" (and ", more, " more)") : "", " ", what));
    }
  }

 private:
  void Add(const std::string& what, const std::string& path) { paths_[what].push_back(path); }

  // The first path of those that have the same elements in memory, by path.
  static std::map<std::string, std::string> FirstOfEach(const Tensors& tensors) {
    std::map<std::tuple<const void*, Dims>, std::string> by_place;
    std::map<std::string, std::string> first;
    for (const auto& [path, tensor] : tensors) {
      if (tensor->scattered != nullptr || tensor->view.num_elements() == 0) continue;
      first[path] = by_place.try_emplace({tensor->view.data(), tensor->view.shape()}, path).first->second;
    }
    return first;
  }

  std::map<std::string, std::vector<std::string>> paths_;
};

// Says of tensors that differ which other tensor of the reference they are.
class Recognizer {
 public:
  Recognizer(const Tensors& reference, const Tensors& current) : reference_(reference), current_(current) {}

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
  // Limits what is read once more, to look at it beyond the comparison.
  static constexpr size_t kMaxExplained = 200;
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;

  // Scalars and small constants are equal by chance.
  static bool IsWorthIt(const Tensor& tensor) {
    return tensor.view.num_elements() >= 2 && tensor.view.num_bytes() <= kMaxBytes;
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
    if (AreSame(Tensor{*transposed, gathered->owner, gathered->file_backed}, tensor))
      add("it is that of the reference, transposed");
  }

  const Tensors& reference_;
  const Tensors& current_;
};

}  // namespace

StateKind StateKindOfResult(const NamedComparison& result) {
  const bool is_tensor =
      !result.comparison.shape.empty() || result.comparison.detail.rfind("a tensor", 0) == 0;
  return StateKindOf(result.path, is_tensor);
}

absl::StatusOr<CheckpointComparison> CompareCheckpoints(const std::string& reference_path,
                                                        const std::string& current_path,
                                                        CompareOptions options, const Layout* names) {
  const CheckpointPaths paths = {reference_path, current_path,
                                 names == nullptr ? std::nullopt : std::optional<Layout>(*names)};
  OTT_ASSIGN_OR_RETURN(const CheckpointPair pair, ReadCheckpointPair(paths));
  const Checkpoint& reference = pair.reference;
  const Checkpoint& current = pair.current;
  CheckpointComparison result;
  result.notes = pair.notes;
  result.problems = pair.problems;
  Tolerance& tolerance = options.tensors.tolerance;
  options.tensors.accept_rounded = !tolerance.bitwise;
  // A state is the same by its bits: also NaN, and not -0 for 0.
  if (tolerance.atol == 0 && tolerance.rtol == 0 && !tolerance.nan_equal) tolerance.bitwise = true;
  result.results = CompareShared(paths, pair, options);
  std::vector<NamedComparison>& results = result.results.results;
  Tensors reference_tensors, current_tensors;
  ListInto("", reference.state, &reference_tensors);
  ListInto("", current.state, &current_tensors);
  AcceptTied(reference_tensors, current_tensors, &results, &result.notes);
  LeaveOutBuckets(reference_tensors, current_tensors, &results, &result.problems);
  LeaveOutStepsOfFirstRank(&results, &result.notes);
  RefuseRounded(&results);
  Recognizer(reference_tensors, current_tensors).Explain(&results);
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
  Remarks remarks;
  // Rules may have transposed what they give a name.
  if (names == nullptr) {
    remarks.AddTypes("", reference.state, current.state);
    remarks.AddRequiresGrad(pair.reference_requires_grad, pair.current_requires_grad);
  }
  // Formats differ in whether they hold what is shared once.
  if (reference.format == current.format) remarks.AddSharing(reference_tensors, current_tensors);
  remarks.AppendTo(&result.notes);
  return result;
}

}  // namespace ott::compare
