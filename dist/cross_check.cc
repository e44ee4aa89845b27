#include "ott/dist/cross_check.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/compare.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/dist/run_directory.h"

namespace ott {
namespace {

absl::Status CheckTolerance(const CrossCheckConfig& config) {
  for (const double tolerance : {config.reference_tolerance().atol(), config.reference_tolerance().rtol()}) {
    // Written so that NaN is refused, too.
    if (!(tolerance >= 0 && std::isfinite(tolerance))) {
      return absl::InvalidArgumentError(absl::StrCat("cross_check: reference_tolerance: ", tolerance,
                                                     " is not a finite number of at least 0"));
    }
  }
  return absl::OkStatus();
}

// The reference's rank to compare `rank` with.
int ReferenceRank(const CrossCheckConfig& config, int rank) {
  if (config.reference_ranks().empty()) return rank;
  return config.reference_ranks(config.reference_ranks_size() == 1 ? 0 : rank);
}

absl::Status CheckReferenceRanks(const CrossCheckConfig& config, int world_size) {
  if (config.reference_ranks_size() > 1 && config.reference_ranks_size() != world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross_check: reference_ranks: ", config.reference_ranks_size(), " entries for ",
                     world_size, " ranks; one for each, or one for all"));
  }
  return absl::OkStatus();
}

// Why `rank` of `world_size` cannot be compared with the reference run; empty if it can.
std::string FindProblem(const CrossCheckConfig& config, int rank, int world_size) {
  const absl::StatusOr<RunInfo> info = ReadRunInfo(config.reference_run());
  if (!info.ok()) return absl::StrCat("reference: ", info.status().message());
  if (config.reference_ranks().empty() && info->world_size() != world_size) {
    return absl::StrCat("reference: ", config.reference_run(), " was made by ", info->world_size(),
                        " ranks, this run has ", world_size,
                        "; reference_ranks says which to compare with which");
  }
  const int of_reference = ReferenceRank(config, rank);
  if (of_reference >= 0 && of_reference < info->world_size()) return "";
  return absl::StrCat("reference: ", config.reference_run(), " has no rank ", of_reference, ", only ",
                      info->world_size(), " ranks");
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

void AddReason(std::string_view reason, CrossCheckVerdict& verdict) {
  absl::StrAppend(verdict.mutable_reason(), verdict.reason().empty() ? "" : "; ", std::string(reason));
}

bool IsDifference(CompareStatus status) {
  return !Passes(status) && status != CompareStatus::kEmpty && status != CompareStatus::kCouldNotCompare;
}

// How much worse an outcome is than a pass.
int Severity(Outcome outcome) {
  switch (outcome) {
    case BITWISE_EQUAL:
      return 0;
    case WITHIN_TOLERANCE:
      return 1;
    case DIFFERENT:
      return 3;
    default:
      return 2;
  }
}

Outcome OutcomeOf(int severity) {
  constexpr Outcome kOutcomes[] = {BITWISE_EQUAL, WITHIN_TOLERANCE, NOT_COMPARED, DIFFERENT};
  return kOutcomes[severity];
}

void Worsen(Outcome outcome, CrossCheckVerdict& verdict) {
  if (Severity(outcome) > Severity(verdict.outcome())) verdict.set_outcome(outcome);
}

// Adds what the comparison of one of a dump's trees found.
void AddResults(const TreeComparison& comparison, std::string_view prefix, CrossCheckVerdict& verdict) {
  for (const NamedComparison& result : comparison.results) {
    const TensorComparison& tensor = result.comparison;
    verdict.set_num_tensors(verdict.num_tensors() + 1);
    if (tensor.max_abs_error) {
      verdict.set_max_abs_error(std::max(verdict.max_abs_error(), tensor.max_abs_error->error));
    }
    if (tensor.max_rel_error) {
      verdict.set_max_rel_error(std::max(verdict.max_rel_error(), tensor.max_rel_error->error));
    }
    if (tensor.status == CompareStatus::kBitwiseEqual) continue;
    verdict.set_num_different_tensors(verdict.num_different_tensors() + 1);
    if (Passes(tensor.status)) {
      Worsen(WITHIN_TOLERANCE, verdict);
      continue;
    }
    const bool is_first = verdict.tensor().empty();
    Worsen(IsDifference(tensor.status) ? DIFFERENT : NOT_COMPARED, verdict);
    if (!is_first) continue;
    verdict.set_tensor(absl::StrCat(std::string(prefix), result.path));
    if (tensor.status != CompareStatus::kMismatch) {
      AddReason(absl::StrCat(verdict.tensor(), ": ", std::string(Name(tensor.status)),
                             tensor.detail.empty() ? "" : ": ", tensor.detail),
                verdict);
      continue;
    }
    verdict.set_dtype(std::string(Name(tensor.dtype)));
    for (const int64_t extent : tensor.shape) verdict.add_shape(extent);
    AddElement(tensor, verdict);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CrossCheck>> CrossCheck::Create(Communicator& ranks,
                                                               const CrossCheckConfig& config,
                                                               std::chrono::nanoseconds timeout) {
  OTT_ASSIGN_OR_RETURN(IterationSelector iterations, IterationSelector::Create(config.iterations()));
  OTT_RETURN_IF_ERROR(CheckTolerance(config));
  OTT_RETURN_IF_ERROR(CheckReferenceRanks(config, ranks.size()));
  const Deadline deadline = Deadline::After(timeout);
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> own, ranks.Split(0, 0, deadline));
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> replicas, ranks.Split(0, 0, deadline));
  return std::unique_ptr<CrossCheck>(
      new CrossCheck(std::move(own), std::move(replicas), config, std::move(iterations), timeout));
}

CrossCheck::CrossCheck(std::unique_ptr<Communicator> ranks, std::unique_ptr<Communicator> replicas,
                       const CrossCheckConfig& config, IterationSelector iterations,
                       std::chrono::nanoseconds timeout)
    : ranks_(std::move(ranks)),
      config_(config),
      iterations_(std::move(iterations)),
      timeout_(timeout),
      replica_check_(std::move(replicas), timeout) {
  if (has_reference()) reference_problem_ = FindProblem(config_, ranks_->rank(), ranks_->size());
}

bool CrossCheck::IsReplicated(const std::string& path) const {
  return config_.replicated().empty() ||
         std::any_of(config_.replicated().begin(), config_.replicated().end(),
                     [&](const std::string& glob) { return fnmatch(glob.c_str(), path.c_str(), 0) == 0; });
}

CrossCheckVerdict CrossCheck::CheckReplicas(int64_t iteration, const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> replicated;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(replicated),
               [this](const NamedTensor& tensor) { return IsReplicated(tensor.path); });
  CrossCheckVerdict verdict = replica_check_.Run(iteration, replicated);
  verdict.set_worst_outcome(verdict.outcome());
  return verdict;
}

CrossCheckVerdict CrossCheck::CheckReference(int64_t iteration, const Value& tensors, const Value* grads) {
  CrossCheckVerdict verdict = CompareWithReference(iteration, tensors, grads);
  ShareOutcome(verdict);
  return verdict;
}

CrossCheckVerdict CrossCheck::CompareWithReference(int64_t iteration, const Value& tensors,
                                                   const Value* grads) const {
  CrossCheckVerdict verdict;
  verdict.set_mode(REFERENCE);
  verdict.set_iteration(iteration);
  verdict.set_rank(ranks_->rank());
  verdict.set_host(ranks_->host(ranks_->rank()));
  verdict.set_outcome(NOT_COMPARED);
  verdict.set_atol(config_.reference_tolerance().atol());
  verdict.set_rtol(config_.reference_tolerance().rtol());
  if (!has_reference()) {
    verdict.set_reason("cross_check: no reference_run is configured");
    return verdict;
  }
  verdict.set_reference(absl::StrCat(
      DumpsDirectory(config_.reference_run(), ReferenceRank(config_, ranks_->rank())), "/", iteration));
  if (!reference_problem_.empty()) {
    verdict.set_reason(reference_problem_);
    return verdict;
  }
  const absl::StatusOr<Dump> reference = ReadDump(verdict.reference());
  if (!reference.ok()) {
    verdict.set_reason(std::string(reference.status().message()));
    return verdict;
  }

  CompareOptions options;
  options.tensors.tolerance.atol = verdict.atol();
  options.tensors.tolerance.rtol = verdict.rtol();
  options.tensors.compare_dtype = reference->manifest.has_value();
  verdict.set_outcome(BITWISE_EQUAL);
  AddResults(CompareTrees(reference->tensors, tensors, options), "tensors.", verdict);
  if (reference->grads && grads != nullptr) {
    AddResults(CompareTrees(*reference->grads, *grads, options), "grads.", verdict);
  } else if (reference->grads || grads != nullptr) {
    Worsen(DIFFERENT, verdict);
    AddReason(grads == nullptr ? "the reference has gradients, this run has none"
                               : "this run has gradients, the reference has none",
              verdict);
  }
  if (verdict.num_tensors() == 0) {
    Worsen(NOT_COMPARED, verdict);
    AddReason("nothing to compare", verdict);
  }
  return verdict;
}

void CrossCheck::ShareOutcome(CrossCheckVerdict& verdict) {
  // The worst outcome, and of the ranks that have it the first.
  constexpr int64_t kRanks = int64_t{1} << 32;
  int64_t worst = Severity(verdict.outcome()) * kRanks + (kRanks - 1 - verdict.rank());
  const absl::Status status =
      ranks_->AllReduce(Reduction::kMax, absl::MakeSpan(&worst, 1), Deadline::After(timeout_));
  if (!status.ok()) {
    verdict.set_worst_outcome(verdict.outcome() == DIFFERENT ? DIFFERENT : NOT_COMPARED);
    verdict.set_worst_rank(verdict.rank());
    AddReason(absl::StrCat("the other ranks' outcome is not known: ", status.message()), verdict);
    return;
  }
  verdict.set_worst_outcome(OutcomeOf(static_cast<int>(worst / kRanks)));
  verdict.set_worst_rank(static_cast<int32_t>(kRanks - 1 - worst % kRanks));
}

}  // namespace ott
