#include "ott/dist/check/cross_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/dist/check/root_exchange.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/agree_on_status.h"
#include "ott/dist/mesh/rank_mesh.h"

namespace ott {
namespace {

using internal::Divergence;

std::optional<Tolerance> ReplicaTolerance(const CrossCheckConfig& config) {
  if (!config.has_replica_tolerance()) return std::nullopt;
  Tolerance tolerance;
  tolerance.atol = config.replica_tolerance().atol();
  tolerance.rtol = config.replica_tolerance().rtol();
  return tolerance;
}

CrossCheckVerdict Run(ReplicaCheck& check, int64_t iteration, const std::vector<NamedTensor>& tensors,
                      const std::string& unmatched, const absl::Status& problem) {
  return problem.ok() ? check.Run(iteration, tensors, unmatched)
                      : check.RunWithoutTensors(iteration, problem);
}

// Over these ranks, though all ranks bring their words.
ReplicaCheckOptions::AreEqual AreEqualAmong(std::vector<int> ranks, RootExchange::AllGather all_gather) {
  if (all_gather == nullptr) return nullptr;
  return [ranks = std::move(ranks), all_gather = std::move(all_gather)](
             absl::Span<const uint64_t> words, Deadline deadline) -> absl::StatusOr<bool> {
    const std::string_view mine(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t));
    OTT_ASSIGN_OR_RETURN(const std::vector<std::string> all, all_gather(mine, deadline));
    return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return all[rank] == mine; });
  };
}

template <typename Selects>
std::vector<NamedTensor> Select(const std::vector<NamedTensor>& tensors, Selects selects) {
  std::vector<NamedTensor> selected;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(selected),
               [&](const NamedTensor& tensor) { return selects(tensor.path); });
  return selected;
}

std::vector<CrossCheckVerdict> ParseAll(const RootExchange::Contributions& contributions) {
  std::vector<CrossCheckVerdict> verdicts;
  for (const auto& [rank, bytes] : contributions.by_rank) {
    CrossCheckVerdict& verdict = verdicts.emplace_back();
    if (!verdict.ParseFromString(bytes)) verdict.set_outcome(NOT_COMPARED);
    verdict.set_rank(rank);
  }
  return verdicts;
}

// The earlier iteration; then the verdict of whom it is printed by, and the lower rank.
bool ComesFirst(const CrossCheckVerdict& a, const CrossCheckVerdict& b) {
  const auto order = [](const CrossCheckVerdict& verdict) {
    return std::tuple(verdict.iteration(), verdict.mode(), verdict.rank() != verdict.worst_rank(),
                      verdict.rank());
  };
  return order(a) < order(b);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CrossCheck>> CrossCheck::Create(Communicator& ranks,
                                                               const CrossCheckConfig& config,
                                                               std::chrono::nanoseconds timeout,
                                                               const Collectives& collectives,
                                                               const std::optional<RankMeshes>& meshes) {
  const RankMeshes of_ranks = meshes.value_or(RankMeshes(ranks.size()));
  const Deadline deadline = Deadline::After(timeout);
  absl::StatusOr<IterationSelector> iterations = IterationSelector::Create(config.iterations());
  absl::StatusOr<ReferenceCheck> reference = ReferenceCheck::Create(config, of_ranks);
  absl::Status checked = iterations.status();
  checked.Update(reference.status());
  absl::StatusOr<RanksAlong> same_data =
      of_ranks.Along(config.same_data_along(), "cross_check: same_data_along");
  checked.Update(same_data.status());
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, checked, deadline));
  std::unique_ptr<CrossCheck> check(
      new CrossCheck(*std::move(iterations), *std::move(reference), timeout, collectives.are_equal));
  const auto silent = std::make_shared<SilentRanks>();
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> for_outcomes, ranks.Split(0, 0, deadline));
  check->outcomes_ =
      std::make_unique<RootExchange>(std::move(for_outcomes), timeout, silent, collectives.all_gather);
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> for_decisions, ranks.Split(0, 0, deadline));
  check->decisions_ = std::make_unique<RootExchange>(std::move(for_decisions), timeout, silent);
  ReplicaCheckOptions options;
  options.tolerance = ReplicaTolerance(config);
  options.silent = silent;
  options.are_equal = collectives.are_equal;
  options.kind_of = [config](const std::string& path) { return KindOfTensor(config, path); };
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> replicas, ranks.Split(0, 0, deadline));
  check->replica_check_ = std::make_unique<ReplicaCheck>(std::move(replicas), timeout, options);
  if (!config.distinct().empty()) {
    std::vector<int64_t> groups(same_data->groups.begin(), same_data->groups.end());
    OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> own, ranks.Split(0, 0, deadline));
    check->distinct_check_ = std::make_unique<DistinctCheck>(std::move(own), timeout, silent,
                                                             std::move(groups), collectives.all_gather);
  }
  options.mode = SHARDS;
  const TensorSelection& selection = check->selection();
  for (int sharding = 0; sharding < config.sharded_size(); ++sharding) {
    const int part = selection.PartOf(sharding, ranks.rank());
    OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> of_part, ranks.Split(part, 0, deadline));
    options.names.clear();
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (selection.PartOf(sharding, rank) == part) options.names.push_back(rank);
    }
    options.are_equal = AreEqualAmong(options.names, collectives.all_gather);
    check->shard_checks_.push_back(std::make_unique<ReplicaCheck>(std::move(of_part), timeout, options));
  }
  return check;
}

CrossCheck::CrossCheck(IterationSelector iterations, ReferenceCheck reference,
                       std::chrono::nanoseconds timeout, ReplicaCheckOptions::AreEqual are_equal)
    : iterations_(std::move(iterations)),
      reference_check_(std::move(reference)),
      timeout_(timeout),
      are_equal_(std::move(are_equal)) {}

std::optional<CrossCheckVerdict> CrossCheck::CheckReplicas(int64_t iteration,
                                                           const std::vector<NamedTensor>& tensors,
                                                           const absl::Status& problem) {
  if (ranks().size() == 1 && has_reference()) return std::nullopt;
  const std::vector<NamedTensor> replicated =
      Select(tensors, [this](const std::string& path) { return selection().IsReplicated(path); });
  CrossCheckVerdict verdict =
      Run(*replica_check_, iteration, replicated, selection().FindUnmatched(tensors), problem);
  const CrossCheckConfig& config = reference_check_.config();
  const bool only_shards = verdict.worst_outcome() == NOT_COMPARED && verdict.num_tensors() == 0 &&
                           verdict.missing_ranks().empty() && config.replicated().empty() &&
                           (!config.sharded().empty() || !config.distinct().empty()) &&
                           selection().FindUnmatchedKinds(tensors).empty();
  if (only_shards) return std::nullopt;
  return verdict;
}

std::vector<CrossCheckVerdict> CrossCheck::CheckShards(int64_t iteration,
                                                       const std::vector<NamedTensor>& tensors,
                                                       const absl::Status& problem) {
  std::vector<CrossCheckVerdict> verdicts;
  for (size_t sharding = 0; sharding < shard_checks_.size(); ++sharding) {
    const std::vector<NamedTensor> shards = Select(tensors, [&](const std::string& path) {
      return selection().ShardingOf(path) == static_cast<int>(sharding);
    });
    const bool has_replicas = ranks().size() > reference_check_.selection().NumParts(sharding);
    if (!has_replicas && has_reference()) continue;
    CrossCheckVerdict& verdict = verdicts.emplace_back(
        Run(*shard_checks_[sharding], iteration, shards,
            selection().FindUnmatchedShards(static_cast<int>(sharding), tensors), problem));
    if (!has_replicas) {
      verdict.set_outcome(NOT_COMPARED);
      AddReason("each part is on one rank only, and there is no reference", verdict);
    }
    ShareOutcome(verdict);
  }
  return verdicts;
}

std::optional<CrossCheckVerdict> CrossCheck::CheckDistinct(int64_t iteration,
                                                           const std::vector<NamedTensor>& tensors,
                                                           const absl::Status& problem) {
  if (distinct_check_ == nullptr) return std::nullopt;
  const std::vector<NamedTensor> distinct =
      Select(tensors, [this](const std::string& path) { return selection().IsDistinct(path); });
  const std::string unmatched = problem.ok() ? selection().FindUnmatchedDistinct(tensors) : "";
  return distinct_check_->Run(iteration, distinct, unmatched, problem);
}

CrossCheckVerdict CrossCheck::CheckReference(int64_t iteration, const Value& tensors, const Value* grads,
                                             const absl::Status& problem) {
  CrossCheckVerdict verdict = reference_check_.Check(iteration, ranks().rank(), tensors, grads, problem);
  verdict.set_host(ranks().host(ranks().rank()));
  for (FirstDifference& difference : *verdict.mutable_differences()) difference.set_hosts(0, verdict.host());
  ShareOutcome(verdict);
  return verdict;
}

void CrossCheck::ShareOutcome(CrossCheckVerdict& verdict) {
  CrossCheckVerdict mine;
  mine.set_outcome(verdict.outcome());
  mine.set_rank(ranks().rank());
  if (verdict.mode() == REFERENCE && verdict.has_tensor_position()) {
    mine.set_tensor(verdict.tensor());
    mine.set_tensor_position(verdict.tensor_position());
  }
  if (verdict.mode() == SHARDS && !Passed(verdict)) mine.set_worst_finding(FormatFinding(verdict));
  const absl::StatusOr<std::string> bytes = outcomes_->Exchange(
      mine.SerializeAsString(),
      [](const RootExchange::Contributions& contributions) -> RootExchange::Decision {
        std::vector<CrossCheckVerdict> verdicts = ParseAll(contributions);
        FindFirst(verdicts);
        CrossCheckVerdict& all = verdicts.front();
        all.clear_outcome();
        all.clear_rank();
        all.clear_tensor();
        all.clear_tensor_position();
        if (contributions.problem.empty()) return {all.SerializeAsString(), false, ""};
        if (all.worst_outcome() != DIFFERENT) all.set_worst_outcome(NOT_COMPARED);
        all.set_reason(absl::StrCat("the other ranks' outcome is not known: ", contributions.problem));
        return {all.SerializeAsString(), false, ""};
      });
  CrossCheckVerdict shared;
  if (bytes.ok() && shared.ParseFromString(*bytes)) {
    const std::string reason = std::exchange(*shared.mutable_reason(), "");
    verdict.MergeFrom(shared);
    if (!reason.empty()) AddReason(reason, verdict);
    return;
  }
  verdict.set_worst_rank(ranks().rank());
  if (verdict.outcome() == DIFFERENT) {
    verdict.set_worst_outcome(DIFFERENT);
  } else {
    verdict.set_outcome(NOT_COMPARED);
  }
  AddReason(absl::StrCat("the other ranks' outcome is not known: ", std::string(bytes.status().message())),
            verdict);
}

bool CrossCheck::NobodyFailed(const std::vector<CrossCheckVerdict>& failed) const {
  if (are_equal_ == nullptr) return false;
  const uint64_t words[] = {failed.empty(), diverged_as_decided_};
  return are_equal_(words, Deadline::After(timeout_ / 4)).value_or(false) && failed.empty();
}

CrossCheck::Decision CrossCheck::AgreeOnDivergence(const std::vector<CrossCheckVerdict>& failed) {
  if (NobodyFailed(failed)) {
    decisions_->Skip();
    return {diverged_as_decided_, std::nullopt};
  }
  Divergence mine;
  mine.set_diverged(!failed.empty());
  // A verdict of a rank that did not hear rank 0 is no reason to act.
  const auto issued = std::find_if(failed.begin(), failed.end(), [](const CrossCheckVerdict& verdict) {
    return verdict.worst_outcome() != OUTCOME_UNKNOWN;
  });
  if (issued != failed.end()) {
    *mine.mutable_verdict() = *issued;
    mine.mutable_verdict()->clear_tensor_errors();
  }
  const absl::StatusOr<std::string> bytes = decisions_->Exchange(
      mine.SerializeAsString(),
      [this](const RootExchange::Contributions& contributions) -> RootExchange::Decision {
        Divergence all;
        for (const auto& [unused, contents] : contributions.by_rank) {
          Divergence of_rank;
          if (!of_rank.ParseFromString(contents)) continue;
          diverged_ = diverged_ || of_rank.diverged();
          const bool is_first =
              of_rank.has_verdict() && (!all.has_verdict() || ComesFirst(of_rank.verdict(), all.verdict()));
          if (is_first) *all.mutable_verdict() = of_rank.verdict();
        }
        all.set_diverged(diverged_);
        const bool binds = all.has_verdict();
        const std::string to_act = all.SerializeAsString();
        all.clear_verdict();
        return {to_act, binds, all.SerializeAsString()};
      });
  Decision decision;
  Divergence decided;
  if (bytes.ok() && decided.ParseFromString(*bytes)) {
    decision.diverged = decided.diverged();
    diverged_as_decided_ = decided.diverged();
    if (decided.has_verdict()) decision.verdict = decided.verdict();
  }
  return decision;
}

}  // namespace ott
