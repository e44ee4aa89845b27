#include "ott/questions/right/compare/compare_checkpoints.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/digest/digest.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/questions/right/compare/checkpoint_names.h"
#include "ott/questions/right/layout/tree_layout.h"

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
  if (a.view.dtype() != b.view.dtype() || a.view.shape() != b.view.shape()) return false;
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
    if (AreSame(Tensor{*transposed, gathered->owner, gathered->file_backed}, tensor))
      add("it is that of the reference, transposed");
  }

  const Tensors& reference_;
  const Tensors& current_;
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
  Tensors reference_tensors, current_tensors;
  ListInto("", reference.state, &reference_tensors);
  ListInto("", current.state, &current_tensors);
  AcceptTied(reference_tensors, current_tensors, &results, &result.notes);
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
  return result;
}

}  // namespace ott::compare
