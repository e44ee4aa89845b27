// Checks, in selected iterations, that the ranks hold the same tensors and that a run does what a reference
// run did.

#ifndef OTT_DIST_CHECK_CROSS_CHECK_H_
#define OTT_DIST_CHECK_CROSS_CHECK_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/iteration_selection.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/reference_check.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// The checks are collective: each rank calls them in the same iterations in the same order. They do not
// fail: what could not be compared, and why, is a verdict that is no pass. Each returns within a little more
// than the timeout.
//
// Not thread-safe.
//
//   OTT_ASSIGN_OR_RETURN(auto check, CrossCheck::Create(*ranks, config.cross_check()));
//   if (check->Selects(iteration)) fputs(FormatVerdict(check->CheckReplicas(iteration, tensors)).c_str(),
//   stdout);
class CrossCheck {
 public:
  // Collective over ranks; the error of one rank is returned on all. INVALID_ARGUMENT for a configuration
  // that selects negative iterations or has a negative or infinite tolerance.
  static absl::StatusOr<std::unique_ptr<CrossCheck>> Create(
      Communicator& ranks, const CrossCheckConfig& config,
      std::chrono::nanoseconds timeout = std::chrono::seconds(60));

  bool Selects(int64_t iteration) const { return iterations_.Contains(iteration); }

  // Compares those of the tensors that are replicated over all ranks. The verdict is the same on all ranks
  // that could hear rank 0. problem: why this rank has no tensors to bring, where it has none.
  CrossCheckVerdict CheckReplicas(int64_t iteration, const std::vector<NamedTensor>& tensors,
                                  const absl::Status& problem = absl::OkStatus());

  // For each of config.sharded, compares this rank's parts with those of the ranks that hold the same.
  // worst_outcome is the same on all ranks. Parts that only one rank holds are left to the reference, and
  // NOT_COMPARED where there is none.
  std::vector<CrossCheckVerdict> CheckShards(int64_t iteration, const std::vector<NamedTensor>& tensors,
                                             const absl::Status& problem = absl::OkStatus());

  // Whether there is a reference to compare with.
  bool has_reference() const { return reference_check_.enabled(); }
  // As ReferenceCheck::Check. The verdict is this rank's; worst_outcome is the same on all ranks. problem: as
  // of CheckReplicas().
  CrossCheckVerdict CheckReference(int64_t iteration, const Value& tensors, const Value* grads,
                                   const absl::Status& problem = absl::OkStatus());

  const TensorSelection& selection() const { return reference_check_.selection(); }

 private:
  CrossCheck(std::unique_ptr<Communicator> ranks, IterationSelector iterations, ReferenceCheck reference,
             std::chrono::nanoseconds timeout);

  void ShareOutcome(CrossCheckVerdict& verdict);

  const std::unique_ptr<Communicator> ranks_;
  const IterationSelector iterations_;
  const std::chrono::nanoseconds timeout_;
  const ReferenceCheck reference_check_;
  std::unique_ptr<ReplicaCheck> replica_check_;
  std::vector<std::unique_ptr<ReplicaCheck>> shard_checks_;
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_CROSS_CHECK_H_
