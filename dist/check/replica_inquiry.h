// The questions that rank 0 asks the others in a check of replicas.

#ifndef OTT_DIST_CHECK_REPLICA_INQUIRY_H_
#define OTT_DIST_CHECK_REPLICA_INQUIRY_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "dist/check/replica_tensors.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/check/replica_check.pb.h"
#include "ott/dist/check/root_exchange.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/rank_list.h"

namespace ott::internal {

// The names of the ranks of a check.
class Members {
 public:
  Members(const Communicator& ranks, const std::vector<int>& names) : ranks_(ranks), names_(names) {}

  int Name(int rank) const { return names_.empty() ? rank : names_[rank]; }
  std::string Describe(int rank) const { return FormatRank(Name(rank), ranks_.host(rank)); }
  std::string DescribeAll(std::vector<int> ranks) const {
    if (ranks.size() == 1) return Describe(ranks.front());
    for (int& rank : ranks) rank = Name(rank);
    return FormatRanks(ranks);
  }
  std::string TooLate(const std::vector<int>& ranks, Deadline deadline) const {
    return absl::StrCat("nothing from ", DescribeAll(ranks), " within ", deadline.Seconds(), " s");
  }

 private:
  const Communicator& ranks_;
  const std::vector<int>& names_;
};

// Groups of ranks that have the same.
using RanksOfBytes = std::map<std::string, std::vector<int>>;

// Rank 0 is asked, too, and answers at once.
class ReplicaInquiry {
 public:
  // check: the number of this check, in each message. Answers to questions are awaited until `decided`.
  ReplicaInquiry(Communicator& ranks, const ReplicaCheckOptions& options, const ReplicaTensors& tensors,
                 uint64_t check, Deadline decided)
      : ranks_(ranks),
        options_(options),
        members_(ranks, options.names),
        tensors_(tensors),
        check_(check),
        decided_(decided) {}

  const Members& members() const { return members_; }

  // Receives what another rank posts next in this check. DEADLINE_EXCEEDED.
  absl::StatusOr<ReplicaAnswer> Receive(int rank, Deadline deadline);

  absl::StatusOr<ReplicaSchema> Schema(int rank);

  // The digests of tensors [begin, end), by group.
  struct Window {
    size_t begin = 0;
    size_t end = 0;
    std::vector<std::pair<std::string, std::vector<int>>> digests;
  };
  // Returns a window that holds the first tensor from `begin` on that differs, if any does; as many tensors
  // as options.max_digest_bytes allows. REQUIRES: there are two groups
  absl::StatusOr<Window> FirstDifferentFrom(size_t begin, const RanksOfBytes& groups);

  // Returns the digests of a tensor's blocks.
  absl::StatusOr<std::string> Leaves(size_t tensor, int rank);
  // Returns the numbers of the blocks in which two ranks differ: at least one.
  absl::StatusOr<std::vector<int64_t>> DifferentBlocks(size_t tensor, int rank, int other);
  // Returns the bytes of one of them.
  absl::StatusOr<std::string> Block(size_t tensor, int64_t block, int rank);

 private:
  absl::StatusOr<ReplicaAnswer> Ask(int rank, ReplicaRequest request);
  absl::StatusOr<Window> Digests(size_t begin, size_t end, bool combined, const RanksOfBytes& groups);
  absl::StatusOr<bool> AreEqual(size_t begin, size_t end, const RanksOfBytes& groups);

  Communicator& ranks_;
  const ReplicaCheckOptions& options_;
  const Members members_;
  const ReplicaTensors& tensors_;
  const uint64_t check_;
  const Deadline decided_;
};

}  // namespace ott::internal

#endif  // OTT_DIST_CHECK_REPLICA_INQUIRY_H_
