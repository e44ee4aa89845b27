// Checks, in selected iterations, that the ranks hold the same tensors and that a run does what a reference
// run did.

#ifndef OTT_DIST_CROSS_CHECK_H_
#define OTT_DIST_CROSS_CHECK_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/iteration_selection.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/communicator.h"
#include "ott/dist/cross_check.pb.h"
#include "ott/dist/replica_check.h"

namespace ott {

// Both checks are collective: each rank calls them in the same iterations in the same order. They do not
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
  // Collective over ranks. INVALID_ARGUMENT for a configuration that selects negative iterations or has a
  // negative or infinite tolerance.
  static absl::StatusOr<std::unique_ptr<CrossCheck>> Create(
      Communicator& ranks, const CrossCheckConfig& config,
      std::chrono::nanoseconds timeout = std::chrono::seconds(60));

  bool Selects(int64_t iteration) const { return iterations_.Contains(iteration); }

  // Compares those of the tensors that config.replicated names, bit for bit, over all ranks. The verdict is
  // the same on all ranks that could hear rank 0.
  CrossCheckVerdict CheckReplicas(int64_t iteration, const std::vector<NamedTensor>& tensors);

  // Whether there is a reference to compare with.
  bool has_reference() const { return !config_.reference_run().empty(); }
  // Compares with REFERENCE/rank_<rank>/dumps/<iteration>, rank being this rank or what
  // config.reference_ranks says. grads: null where there are none. The verdict is this rank's; worst_outcome
  // is the same on all ranks. Paths start with "tensors." or "grads.".
  CrossCheckVerdict CheckReference(int64_t iteration, const Value& tensors, const Value* grads);

 private:
  CrossCheck(std::unique_ptr<Communicator> ranks, std::unique_ptr<Communicator> replicas,
             const CrossCheckConfig& config, IterationSelector iterations, std::chrono::nanoseconds timeout);

  bool IsReplicated(const std::string& path) const;
  CrossCheckVerdict CompareWithReference(int64_t iteration, const Value& tensors, const Value* grads) const;
  void ShareOutcome(CrossCheckVerdict& verdict);

  const std::unique_ptr<Communicator> ranks_;
  const CrossCheckConfig config_;
  const IterationSelector iterations_;
  const std::chrono::nanoseconds timeout_;
  ReplicaCheck replica_check_;
  // Why the reference run as a whole cannot be compared with; empty if it can.
  std::string reference_problem_;
};

}  // namespace ott

#endif  // OTT_DIST_CROSS_CHECK_H_
