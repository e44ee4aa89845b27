// Checks, in selected iterations, that the ranks hold the same tensors and that a run does what a reference
// run did.

#ifndef OTT_DIST_CHECK_CROSS_CHECK_H_
#define OTT_DIST_CHECK_CROSS_CHECK_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/iteration_selection.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/distinct_check.h"
#include "ott/dist/check/reference_check.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/check/root_exchange.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/mesh/rank_mesh.h"

namespace ott {

// The checks are collective: each rank calls them in the same iterations in the same order. They return no
// errors: where something could not be compared, the verdict is no pass and says why. Each returns after
// little more than the timeout. A rank that did not answer is not waited for again, by any of the checks,
// until it is heard.
//
// Not thread-safe.
//
//   OTT_ASSIGN_OR_RETURN(auto check, CrossCheck::Create(*ranks, config.cross_check()));
//   if (check->Selects(iteration)) {
//     const auto verdict = check->CheckReplicas(iteration, tensors);
//     if (verdict) fputs(FormatVerdict(*verdict).c_str(), stdout);
//   }
class CrossCheck {
 public:
  // Collectives over all ranks of another kind than messages, such as NCCL's; all of them or none. As long as
  // they work, messages travel where ranks differ or have failed, and nowhere else.
  struct Collectives {
    ReplicaCheckOptions::AreEqual are_equal;
    RootExchange::AllGather all_gather;
  };

  // Creates the checks, collectively over ranks; the error of one rank is returned on all. INVALID_ARGUMENT
  // for a configuration that selects negative iterations, has a negative or infinite tolerance, or names axes
  // that `meshes` does not have.
  static absl::StatusOr<std::unique_ptr<CrossCheck>> Create(
      Communicator& ranks, const CrossCheckConfig& config,
      std::chrono::nanoseconds timeout = std::chrono::seconds(60), const Collectives& collectives = {},
      const std::optional<RankMeshes>& meshes = std::nullopt);

  bool Selects(int64_t iteration) const { return iterations_.Contains(iteration); }

  // Compares those of the tensors that are replicated over all ranks. The verdict is the same on all ranks
  // that could hear rank 0. problem: why this rank has no tensors to bring, if it has none. Nullopt if
  // another check applies instead of this one: for a single rank that has a reference, and if all tensors are
  // shards.
  std::optional<CrossCheckVerdict> CheckReplicas(int64_t iteration, const std::vector<NamedTensor>& tensors,
                                                 const absl::Status& problem = absl::OkStatus());

  // Compares this rank's parts, for each of config.sharded, with those of the ranks that hold the same.
  // worst_outcome is the same on all ranks. Parts that only one rank holds are left to the reference, and
  // NOT_COMPARED if there is no reference.
  std::vector<CrossCheckVerdict> CheckShards(int64_t iteration, const std::vector<NamedTensor>& tensors,
                                             const absl::Status& problem = absl::OkStatus());

  // Checks that no two ranks hold the same of config.distinct. The verdict is the same on all ranks that
  // could hear rank 0; nullopt if config.distinct is empty.
  std::optional<CrossCheckVerdict> CheckDistinct(int64_t iteration, const std::vector<NamedTensor>& tensors,
                                                 const absl::Status& problem = absl::OkStatus());

  // Returns true if there is a reference to compare with.
  bool has_reference() const { return reference_check_.enabled(); }
  // Works like ReferenceCheck::Check. The verdict is this rank's; worst_outcome and what is said of the first
  // tensor are the same on all ranks. problem: see CheckReplicas().
  CrossCheckVerdict CheckReference(int64_t iteration, const Value& tensors, const Value* grads,
                                   const absl::Status& problem = absl::OkStatus());

  // All ranks act on a divergence together: rank 0 decides, and the others follow.
  struct Decision {
    // True if any rank saw one, ever.
    bool diverged = false;
    // To be acted upon, by all ranks; the same on all.
    std::optional<CrossCheckVerdict> verdict;
  };
  // Lets all ranks agree on a decision. failed: this rank's verdicts, since the last decision to act, that
  // did not pass on all ranks. A rank that rank 0 does not answer does not act, and brings its verdicts again
  // the next time.
  Decision AgreeOnDivergence(const std::vector<CrossCheckVerdict>& failed);

  const TensorSelection& selection() const { return reference_check_.selection(); }

 private:
  CrossCheck(IterationSelector iterations, ReferenceCheck reference, std::chrono::nanoseconds timeout,
             ReplicaCheckOptions::AreEqual are_equal);

  const Communicator& ranks() const { return outcomes_->ranks(); }
  // Returns true if all ranks know the same and none of them has anything to tell.
  bool NobodyFailed(const std::vector<CrossCheckVerdict>& failed) const;
  void ShareOutcome(CrossCheckVerdict& verdict);

  const IterationSelector iterations_;
  const ReferenceCheck reference_check_;
  const std::chrono::nanoseconds timeout_;
  const ReplicaCheckOptions::AreEqual are_equal_;
  bool diverged_ = false;             // any rank; kept on rank 0
  bool diverged_as_decided_ = false;  // what this rank heard of it last
  std::unique_ptr<RootExchange> outcomes_;
  std::unique_ptr<RootExchange> decisions_;
  std::unique_ptr<ReplicaCheck> replica_check_;
  std::vector<std::unique_ptr<ReplicaCheck>> shard_checks_;
  // Null if config.distinct is empty.
  std::unique_ptr<DistinctCheck> distinct_check_;
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_CROSS_CHECK_H_
