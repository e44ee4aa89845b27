// Compares tensors that should be the same on all ranks.

#ifndef OTT_DIST_CHECK_REPLICA_CHECK_H_
#define OTT_DIST_CHECK_REPLICA_CHECK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/silent_ranks.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

namespace internal {
class ReplicaAnnouncement;
class ReplicaTensors;
}  // namespace internal

struct ReplicaCheckOptions {
  // REPLICAS or SHARDS.
  CrossCheckMode mode = REPLICAS;
  // The numbers of the ranks in verdicts and in `silent`; empty: their numbers in the communicator.
  std::vector<int> names;
  // The ranks that are not waited for; null: the check keeps a list of its own.
  std::shared_ptr<SilentRanks> silent;
  // Absent: bit for bit.
  std::optional<Tolerance> tolerance;
  // Limits the bytes of tensors' digests that rank 0 holds at a time, 16 for each tensor and content. If that
  // is too little for all tensors, it finds the first one that differs by bisection.
  size_t max_digest_bytes = size_t{64} << 20;
  // True if all ranks brought the same words, by a collective of its own kind, such as NCCL's, which all
  // ranks call in each check. Where they did, no messages travel; ranks that meet an error go on by messages.
  // Null: messages alone.
  using AreEqual = std::function<absl::StatusOr<bool>(absl::Span<const uint64_t> words, Deadline deadline)>;
  AreEqual are_equal;
  // Returns the kind of a tensor, for CrossCheckVerdict.kinds; null: these are not counted.
  std::function<TensorKind(const std::string& path)> kind_of;
};

// Every rank announces a digest of its tensors' names, dtypes and shapes and one of their contents, 32 bytes
// whatever their number. Where all agree, that is all that travels. Else rank 0 asks one rank of each group
// that agrees for more: the digests of each tensor (16 bytes), then of the blocks of the first tensor that
// differs, then the first block that differs. A tensor's minority are the culprits where more than half of
// all ranks, missing ones included, agree on it. One rank alone is not compared.
//
// With a tolerance, all blocks travel in which a tensor's groups differ. All must be within it of each other.
// Culprits are those that agree with nobody who agrees with more than half of all ranks; which rank has what
// does not matter. Of more than 16 different contents, each is compared with the 16 that most ranks have.
//
// Ranks exchange single messages and use no collectives. A rank that is stopped or gone counts as missing
// after half of `timeout`: the verdict names it, and the others are compared. When it is back it takes part
// in the next check. A rank that did not answer is not waited for again until it is heard.
//
// Not thread-safe. Every rank calls Run the same number of times.
class ReplicaCheck {
 public:
  // ranks: a communicator of its own, from Split().
  // REQUIRES: no options.names, or one for each rank.
  ReplicaCheck(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout,
               ReplicaCheckOptions options = {});

  // Returns within the timeout. The verdict is rank 0's, on all ranks that heard it in time; the others' says
  // NOT_COMPARED and has no worst_outcome.
  // incomplete: why this would be no pass even if all is equal; rank 0's counts.
  CrossCheckVerdict Run(int64_t iteration, absl::Span<const NamedTensor> tensors,
                        const std::string& incomplete = "");

  // Takes part for a rank that has no tensors to bring: the verdict says why, and the others are compared if
  // rank 0 is among them. REQUIRES: !problem.ok()
  CrossCheckVerdict RunWithoutTensors(int64_t iteration, const absl::Status& problem);

 private:
  CrossCheckVerdict Run(const internal::ReplicaAnnouncement& mine, const internal::ReplicaTensors& tensors,
                        const std::string& incomplete);
  absl::StatusOr<bool> AreAllEqual(const internal::ReplicaAnnouncement& mine, const std::string& incomplete,
                                   Deadline deadline) const;

  const std::unique_ptr<Communicator> ranks_;
  const std::chrono::nanoseconds timeout_;
  ReplicaCheckOptions options_;
  uint64_t num_checks_ = 0;
  std::map<int, int64_t> times_named_;  // by the culprit's name; kept on rank 0
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_REPLICA_CHECK_H_
