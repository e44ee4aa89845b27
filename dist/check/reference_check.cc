#include "ott/dist/check/reference_check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/adding_order.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/stand_in.h"
#include "ott/dist/check/verdict.h"

namespace ott {
namespace {

absl::Status CheckTolerance(const char* name, const ToleranceConfig& config) {
  for (const double tolerance : {config.atol(), config.rtol()}) {
    if (IsTolerance(tolerance)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("cross_check: ", name, ": ", tolerance, " is not a finite number of at least 0"));
  }
  return absl::OkStatus();
}

FirstDifference ToProto(const ElementDifference& element) {
  FirstDifference difference;
  difference.set_element(element.position);
  for (const int64_t i : element.index) difference.add_index(i);
  difference.set_value(element.current_text);
  difference.set_expected(element.reference_text);
  return difference;
}

// The worst element of a mismatch, with its bits where it is the first whose bits differ.
void AddElement(const TensorComparison& comparison, CrossCheckVerdict& verdict) {
  if (comparison.worst.empty()) return;
  FirstDifference& difference = *verdict.add_differences();
  difference = ToProto(comparison.worst.front());
  difference.add_ranks(verdict.rank());
  difference.add_hosts(verdict.host());
  const std::optional<BitDifference>& bits = comparison.first_bit_difference;
  if (!bits || bits->element.position != difference.element()) return;
  for (const int bit : bits->flipped_bits) difference.add_flipped_bits(bit);
  if (bits->ulp_distance) difference.set_ulp_distance(*bits->ulp_distance);
}

bool IsDifference(CompareStatus status) {
  return !Passes(status) && status != CompareStatus::kEmpty && status != CompareStatus::kCouldNotCompare;
}

void AddError(const std::string& path, const TensorComparison& comparison, CrossCheckVerdict& verdict) {
  TensorError& error = *verdict.add_tensor_errors();
  error.set_tensor(path);
  if (!comparison.has_figures()) {
    error.set_problem(absl::StrCat(std::string(Name(comparison.status)),
                                   comparison.detail.empty() ? "" : ": ", comparison.detail));
    if (!IsDifference(comparison.status)) error.set_is_unknown(true);
    return;
  }
  if (comparison.max_abs_error) error.set_max_abs_error(comparison.max_abs_error->error);
  if (comparison.max_rel_error) error.set_max_rel_error(comparison.max_rel_error->error);
  error.set_passing_atol(comparison.passing_atol);
  error.set_atol(comparison.tolerance.atol);
  error.set_rtol(comparison.tolerance.rtol);
}

// Adds what the comparison of one of a dump's trees found.
void AddResults(const TreeComparison& comparison, const TensorSelection& selection,
                CrossCheckVerdict& verdict) {
  for (const NamedComparison& result : comparison.results) {
    const TensorComparison& tensor = result.comparison;
    verdict.set_num_tensors(verdict.num_tensors() + 1);
    CountKind(selection.KindOf(result.path), !Passes(tensor.status), *verdict.mutable_kinds());
    if (tensor.max_abs_error) {
      verdict.set_max_abs_error(std::max(verdict.max_abs_error(), tensor.max_abs_error->error));
    }
    if (tensor.max_rel_error) {
      verdict.set_max_rel_error(std::max(verdict.max_rel_error(), tensor.max_rel_error->error));
    }
    if (tensor.status == CompareStatus::kBitwiseEqual) continue;
    AddError(result.path, tensor, verdict);
    verdict.set_num_different_tensors(verdict.num_different_tensors() + 1);
    if (Passes(tensor.status)) {
      Worsen(WITHIN_TOLERANCE, verdict);
      continue;
    }
    const bool is_first = verdict.tensor().empty();
    Worsen(IsDifference(tensor.status) ? DIFFERENT : NOT_COMPARED, verdict);
    if (!is_first) continue;
    verdict.set_tensor(result.path);
    verdict.set_tensor_position(verdict.num_tensors() - 1);
    if (!tensor.has_figures()) {
      const std::string& problem = verdict.tensor_errors().rbegin()->problem();
      AddReason(result.path.empty() ? "nothing to compare" : absl::StrCat(result.path, ": ", problem),
                verdict);
      continue;
    }
    verdict.set_atol(tensor.tolerance.atol);
    verdict.set_rtol(tensor.tolerance.rtol);
    verdict.set_dtype(std::string(Name(tensor.dtype)));
    for (const int64_t extent : tensor.shape) verdict.add_shape(extent);
    AddElement(tensor, verdict);
  }
}

// The paths that a run of this configuration dumps; nullopt: all.
std::optional<Selection> DumpedPaths(const DumpConfig& config) {
  SelectionOptions options;
  options.include_globs = {config.include_globs().begin(), config.include_globs().end()};
  options.include_regexes = {config.include_regexes().begin(), config.include_regexes().end()};
  options.exclude_globs = {config.exclude_globs().begin(), config.exclude_globs().end()};
  options.exclude_regexes = {config.exclude_regexes().begin(), config.exclude_regexes().end()};
  if (options.include_globs.empty() && options.include_regexes.empty() && options.exclude_globs.empty() &&
      options.exclude_regexes.empty()) {
    return std::nullopt;
  }
  absl::StatusOr<Selection> selection = Selection::Create(std::move(options));
  return selection.ok() ? std::optional<Selection>(*std::move(selection)) : std::nullopt;
}

// The tree as TensorDumper leaves it to a dump; nullopt if it had tensors and none of them is left.
std::optional<Value> KeepDumped(const Selection& dumped, const std::string& path, const Value& tree) {
  if (tree.is_tensor()) return dumped.WantsPath(path) ? std::optional<Value>(tree) : std::nullopt;
  if (tree.is_list()) {
    Value::List list;
    for (size_t i = 0; i < tree.list().size(); ++i)
      list.push_back(KeepDumped(dumped, JoinPath(path, absl::StrCat(i)), tree.list()[i]).value_or(Value()));
    return list;
  }
  if (!tree.is_map()) return tree;
  ValueMap map;
  for (const auto& [name, child] : tree.map()) {
    if (std::optional<Value> kept = KeepDumped(dumped, JoinPath(path, name), child))
      map.Insert(name, *std::move(kept));
  }
  if (map.empty() && !tree.map().empty()) return std::nullopt;
  return map;
}

// Returns true for a map that is no tensor's stand-in.
bool IsMapOfTensors(const Value& tree) {
  return tree.is_map() && StatisticsOf(tree) == nullptr && ImageOf(tree) == nullptr;
}

// Returns true if any tensor of the tree is checked, whichever way it was dumped.
bool HasSelected(const TensorSelection& selection, const std::string& path, const Value& tree) {
  if (selection.config().kinds().empty()) return true;
  if (IsMapOfTensors(tree)) {
    return std::any_of(tree.map().begin(), tree.map().end(), [&](const auto& entry) {
      return HasSelected(selection, JoinPath(path, entry.first), entry.second);
    });
  }
  if (!tree.is_list()) return selection.IsSelected(path);
  for (size_t i = 0; i < tree.list().size(); ++i) {
    if (HasSelected(selection, JoinPath(path, absl::StrCat(i)), tree.list()[i])) return true;
  }
  return false;
}

// The tree with the tensors that are checked, and with this rank's parts of those that are whole here and
// shards in `current`. path: as configurations write it.
Value SelectAndSlice(const TensorSelection& selection, int rank, const std::string& path, const Value& tree,
                     const Value* current) {
  if (IsMapOfTensors(tree)) {
    ValueMap map;
    for (const auto& [name, child] : tree.map()) {
      const Value* const theirs =
          current != nullptr && current->is_map() ? current->map().Find(name) : nullptr;
      const std::string child_path = JoinPath(path, name);
      if (!HasSelected(selection, child_path, child)) continue;
      map.Insert(name, SelectAndSlice(selection, rank, child_path, child, theirs));
    }
    return map;
  }
  if (tree.is_list()) {
    Value::List list;
    for (size_t i = 0; i < tree.list().size(); ++i) {
      const bool has_it = current != nullptr && current->is_list() && i < current->list().size();
      const std::string item = JoinPath(path, absl::StrCat(i));
      // Nothing stands for an item that is not checked, so that items after it keep their numbers.
      list.push_back(
          HasSelected(selection, item, tree.list()[i])
              ? SelectAndSlice(selection, rank, item, tree.list()[i], has_it ? &current->list()[i] : nullptr)
              : Value());
    }
    return list;
  }
  if (!tree.is_tensor() || current == nullptr || !current->is_tensor()) return tree;
  const int sharding = selection.ShardingOf(path);
  const TensorView& whole = tree.tensor().view;
  if (sharding < 0 || whole.shape() == current->tensor().view.shape()) return tree;
  absl::StatusOr<TensorView> part = selection.Slice(sharding, rank, whole);
  // A tensor that has no such part differs in its shape.
  if (!part.ok()) return tree;
  return Tensor{*part, tree.tensor().owner, /*file_backed=*/false, tree.tensor().dtype_known};
}

}  // namespace

absl::StatusOr<ReferenceCheck> ReferenceCheck::Create(const CrossCheckConfig& config,
                                                      const RankMeshes& meshes,
                                                      std::optional<RunInfo> reference) {
  const int world_size = meshes.num_ranks();
  OTT_RETURN_IF_ERROR(CheckTolerance("reference_tolerance", config.reference_tolerance()));
  OTT_RETURN_IF_ERROR(CheckTolerance("replica_tolerance", config.replica_tolerance()));
  if (config.reference_ranks_size() > 1 && config.reference_ranks_size() != world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross_check: reference_ranks: ", config.reference_ranks_size(), " entries for ",
                     world_size, " ranks; one for each, or one for all"));
  }
  CrossCheckConfig of_latest = config;
  if (!config.reference_run().empty()) of_latest.set_reference_run(LatestAttempt(config.reference_run()));
  OTT_ASSIGN_OR_RETURN(TensorSelection selection, TensorSelection::Create(of_latest, meshes));
  CompareOptions options;
  // The other cores are the other ranks'.
  options.tensors.num_threads = 1;
  options.tensors.tolerance.atol = config.reference_tolerance().atol();
  options.tensors.tolerance.rtol = config.reference_tolerance().rtol();
  options.tensors.tolerance.nan_equal = true;
  options.allow_empty = false;
  std::optional<ToleranceFile> tolerances;
  if (!config.reference_tolerances().empty()) {
    OTT_ASSIGN_OR_RETURN(tolerances, ToleranceFile::Read(config.reference_tolerances()));
  }
  ReferenceCheck check(std::move(selection), world_size, std::move(options), std::move(tolerances));
  if (reference) {
    check.reference_ = *std::move(reference);
  } else if (check.enabled()) {
    check.reference_ = ReadRunInfo(check.config().reference_run());
  }
  if (check.reference_.ok()) check.dumped_ = DumpedPaths(check.reference_->config().dump());
  return check;
}

ReferenceCheck::ReferenceCheck(TensorSelection selection, int world_size, CompareOptions options,
                               std::optional<ToleranceFile> tolerances)
    : selection_(std::move(selection)),
      world_size_(world_size),
      options_(std::move(options)),
      tolerances_(std::move(tolerances)),
      reference_(absl::FailedPreconditionError("cross_check: no reference_run is configured")) {}

std::string ReferenceCheck::ReferenceDump(int64_t iteration, int rank) const {
  return DumpPath(config().reference_run(), ReferenceRank(rank), iteration);
}

int ReferenceCheck::ReferenceRank(int rank) const {
  if (config().reference_ranks().empty()) return rank;
  return config().reference_ranks(config().reference_ranks_size() == 1 ? 0 : rank);
}

std::string ReferenceCheck::FindProblem(int rank) const {
  if (!reference_.ok()) return absl::StrCat("reference: ", reference_.status().message());
  if (config().reference_ranks().empty() && reference_->world_size() != world_size_) {
    return absl::StrCat("reference: ", config().reference_run(), " was made by ", reference_->world_size(),
                        " ranks, this run has ", world_size_,
                        "; reference_ranks says which to compare with which");
  }
  const int of_reference = ReferenceRank(rank);
  if (of_reference >= 0 && of_reference < reference_->world_size()) return "";
  return absl::StrCat("reference: ", config().reference_run(), " has no rank ", of_reference, ", only ",
                      reference_->world_size(), " ranks");
}

std::string ReferenceCheck::DescribeMissing(int of_reference, int64_t iteration) const {
  const absl::StatusOr<std::vector<int64_t>> dumps =
      ListDumps(DumpsDirectory(config().reference_run(), of_reference));
  const bool has_others = dumps.ok() && !dumps->empty();
  return absl::StrCat("the reference has no dump of rank ", of_reference, " in iteration ", iteration,
                      has_others ? absl::StrCat("; it has ", dumps->size(), ", from iteration ",
                                                dumps->front(), " to ", dumps->back())
                                 : ", nor in any other",
                      "; dump the same iterations in both runs");
}

CrossCheckVerdict ReferenceCheck::Start(int64_t iteration, int rank) const {
  CrossCheckVerdict verdict;
  verdict.set_mode(REFERENCE);
  verdict.set_iteration(iteration);
  verdict.set_rank(rank);
  verdict.set_outcome(NOT_COMPARED);
  verdict.set_atol(options_.tensors.tolerance.atol);
  verdict.set_rtol(options_.tensors.tolerance.rtol);
  if (tolerances_) verdict.set_tolerances(tolerances_->path());
  verdict.set_reason(FindProblem(rank));
  if (enabled()) {
    verdict.set_reference(ReferenceDump(iteration, rank));
  }
  return verdict;
}

void ReferenceCheck::Compare(int rank, const Value& tensors, const Value* grads,
                             CrossCheckVerdict& verdict) const {
  const absl::StatusOr<Dump> reference = ReadDump(verdict.reference());
  if (!reference.ok()) {
    return AddReason(PathExists(verdict.reference())
                         ? std::string(reference.status().message())
                         : DescribeMissing(ReferenceRank(rank), verdict.iteration()),
                     verdict);
  }
  verdict.set_outcome(BITWISE_EQUAL);
  CompareOptions options = options_;
  if (tolerances_) options.path_tolerances = tolerances_->At(verdict.iteration(), /*nan_equal=*/true);
  const auto compare = [&](const std::string& below, const Value& of_reference, const Value& current) {
    Value expected = SelectAndSlice(selection_, rank, below, of_reference, &current);
    Value selected = SelectAndSlice(selection_, rank, below, current, nullptr);
    const auto is_empty = [](const Value& value) { return value.is_map() && value.map().empty(); };
    if (!config().kinds().empty() && is_empty(expected) && is_empty(selected)) return TreeComparison();
    if (!below.empty()) {
      expected = ValueMap{{below, std::move(expected)}};
      selected = ValueMap{{below, std::move(selected)}};
    }
    return CompareTrees(expected, selected, options);
  };
  TreeComparison compared = compare("", reference->tensors, tensors);
  if (reference->manifest.has_value()) AddingOrder(reference->manifest->tensor_order).Sort(compared.results);
  for (NamedComparison& result : compared.results) {
    result.path = TensorName(result.path, reference->grads.has_value() || grads != nullptr);
  }
  AddResults(compared, selection_, verdict);
  if (reference->grads && grads != nullptr) {
    AddResults(compare("grads", *reference->grads, *grads), selection_, verdict);
  } else if (const Value* const lone = reference->grads ? &*reference->grads : grads;
             lone != nullptr && HasSelected(selection_, "grads", *lone)) {
    Worsen(DIFFERENT, verdict);
    AddReason(grads == nullptr ? "the reference has gradients, this run has none"
                               : "this run has gradients, the reference has none",
              verdict);
  }
  const std::string unmatched = selection_.FindUnmatchedKinds(ListTensorsAndGrads(tensors, grads));
  if (!unmatched.empty()) {
    Worsen(NOT_COMPARED, verdict);
    AddReason(unmatched, verdict);
  }
  if (verdict.outcome() != DIFFERENT) verdict.clear_kinds();
  if (verdict.num_tensors() == 0) {
    Worsen(NOT_COMPARED, verdict);
    AddReason("nothing to compare", verdict);
  }
}

CrossCheckVerdict ReferenceCheck::Check(int64_t iteration, int rank, const Value& tensors, const Value* grads,
                                        const absl::Status& problem) const {
  CrossCheckVerdict verdict = Start(iteration, rank);
  if (!problem.ok()) AddReason(std::string(problem.message()), verdict);
  if (!verdict.reason().empty()) return verdict;
  if (!dumped_.has_value()) {
    Compare(rank, tensors, grads, verdict);
    return verdict;
  }
  // A run adds tensors for its checks that no run dumps.
  const Value kept = KeepDumped(*dumped_, "", tensors).value_or(ValueMap());
  const std::optional<Value> kept_grads = grads == nullptr ? std::nullopt : KeepDumped(*dumped_, "", *grads);
  Compare(rank, kept, kept_grads.has_value() ? &*kept_grads : nullptr, verdict);
  return verdict;
}

CrossCheckVerdict ReferenceCheck::CheckDump(int64_t iteration, int rank, const std::string& dump_dir) const {
  CrossCheckVerdict verdict = Start(iteration, rank);
  if (verdict.reason().empty() && IsSameDump(dump_dir, verdict.reference())) {
    AddReason(absl::StrCat(dump_dir, " is ", verdict.reference(), ", or links to it, and always agrees"),
              verdict);
  }
  if (!verdict.reason().empty()) return verdict;
  const absl::StatusOr<Dump> dump = ReadDump(dump_dir);
  if (!dump.ok()) {
    AddReason(std::string(dump.status().message()), verdict);
    return verdict;
  }
  Compare(rank, dump->tensors, dump->grads ? &*dump->grads : nullptr, verdict);
  return verdict;
}

}  // namespace ott
