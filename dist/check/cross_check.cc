#include "ott/dist/check/cross_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/agree_on_status.h"

namespace ott {
namespace {

std::optional<Tolerance> ReplicaTolerance(const CrossCheckConfig& config) {
  if (!config.has_replica_tolerance()) return std::nullopt;
  Tolerance tolerance;
  tolerance.atol = config.replica_tolerance().atol();
  tolerance.rtol = config.replica_tolerance().rtol();
  return tolerance;
}

CrossCheckVerdict Run(ReplicaCheck& check, int64_t iteration, const std::vector<NamedTensor>& tensors,
                      const absl::Status& problem) {
  return problem.ok() ? check.Run(iteration, tensors) : check.RunWithoutTensors(iteration, problem);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CrossCheck>> CrossCheck::Create(Communicator& ranks,
                                                               const CrossCheckConfig& config,
                                                               std::chrono::nanoseconds timeout) {
  const Deadline deadline = Deadline::After(timeout);
  absl::StatusOr<IterationSelector> iterations = IterationSelector::Create(config.iterations());
  absl::StatusOr<ReferenceCheck> reference = ReferenceCheck::Create(config, ranks.size());
  OTT_RETURN_IF_ERROR(
      AgreeOnStatus(ranks, iterations.ok() ? reference.status() : iterations.status(), deadline));
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> own, ranks.Split(0, 0, deadline));
  std::unique_ptr<CrossCheck> check(
      new CrossCheck(std::move(own), *std::move(iterations), *std::move(reference), timeout));
  ReplicaCheckOptions options;
  options.tolerance = ReplicaTolerance(config);
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> replicas, ranks.Split(0, 0, deadline));
  check->replica_check_ = std::make_unique<ReplicaCheck>(std::move(replicas), timeout, options);
  options.mode = SHARDS;
  const TensorSelection& selection = check->selection();
  for (int sharding = 0; sharding < config.sharded_size(); ++sharding) {
    const int part = selection.PartOf(sharding, ranks.rank());
    OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> of_part, ranks.Split(part, 0, deadline));
    options.names.clear();
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (selection.PartOf(sharding, rank) == part) options.names.push_back(rank);
    }
    check->shard_checks_.push_back(std::make_unique<ReplicaCheck>(std::move(of_part), timeout, options));
  }
  return check;
}

CrossCheck::CrossCheck(std::unique_ptr<Communicator> ranks, IterationSelector iterations,
                       ReferenceCheck reference, std::chrono::nanoseconds timeout)
    : ranks_(std::move(ranks)),
      iterations_(std::move(iterations)),
      timeout_(timeout),
      reference_check_(std::move(reference)) {}

CrossCheckVerdict CrossCheck::CheckReplicas(int64_t iteration, const std::vector<NamedTensor>& tensors,
                                            const absl::Status& problem) {
  std::vector<NamedTensor> replicated;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(replicated),
               [this](const NamedTensor& tensor) { return selection().IsReplicated(tensor.path); });
  CrossCheckVerdict verdict = Run(*replica_check_, iteration, replicated, problem);
  verdict.set_worst_outcome(verdict.outcome());
  return verdict;
}

std::vector<CrossCheckVerdict> CrossCheck::CheckShards(int64_t iteration,
                                                       const std::vector<NamedTensor>& tensors,
                                                       const absl::Status& problem) {
  std::vector<CrossCheckVerdict> verdicts;
  for (size_t sharding = 0; sharding < shard_checks_.size(); ++sharding) {
    std::vector<NamedTensor> shards;
    std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(shards), [&](const NamedTensor& tensor) {
      return selection().ShardingOf(tensor.path) == static_cast<int>(sharding);
    });
    const bool has_replicas = ranks_->size() > reference_check_.config().sharded(sharding).num_parts();
    if (!has_replicas && has_reference()) continue;
    CrossCheckVerdict& verdict =
        verdicts.emplace_back(Run(*shard_checks_[sharding], iteration, shards, problem));
    if (!has_replicas) {
      verdict.set_outcome(NOT_COMPARED);
      AddReason("each part is on one rank only, and there is no reference", verdict);
    }
    ShareOutcome(verdict);
  }
  return verdicts;
}

CrossCheckVerdict CrossCheck::CheckReference(int64_t iteration, const Value& tensors, const Value* grads,
                                             const absl::Status& problem) {
  CrossCheckVerdict verdict = reference_check_.Check(iteration, ranks_->rank(), tensors, grads, problem);
  verdict.set_host(ranks_->host(ranks_->rank()));
  for (FirstDifference& difference : *verdict.mutable_differences()) difference.set_hosts(0, verdict.host());
  ShareOutcome(verdict);
  return verdict;
}

void CrossCheck::ShareOutcome(CrossCheckVerdict& verdict) {
  // The worst outcome, and of the ranks that have it the first.
  constexpr int64_t kRanks = int64_t{1} << 32;
  int64_t worst = SeverityOf(verdict.outcome()) * kRanks + (kRanks - 1 - verdict.rank());
  const absl::Status status =
      ranks_->AllReduce(Reduction::kMax, absl::MakeSpan(&worst, 1), Deadline::After(timeout_));
  if (!status.ok()) {
    verdict.set_worst_outcome(verdict.outcome() == DIFFERENT ? DIFFERENT : NOT_COMPARED);
    verdict.set_worst_rank(verdict.rank());
    AddReason(absl::StrCat("the other ranks' outcome is not known: ", status.message()), verdict);
    return;
  }
  verdict.set_worst_outcome(OutcomeOfSeverity(static_cast<int>(worst / kRanks)));
  verdict.set_worst_rank(static_cast<int32_t>(kRanks - 1 - worst % kRanks));
}

}  // namespace ott
