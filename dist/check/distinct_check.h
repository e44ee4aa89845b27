// Checks that ranks do not hold the same tensors, such as the shards of data that they read.

#ifndef OTT_DIST_CHECK_DISTINCT_CHECK_H_
#define OTT_DIST_CHECK_DISTINCT_CHECK_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/root_exchange.h"
#include "ott/dist/check/silent_ranks.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Every rank brings a digest of each tensor, and rank 0 looks for two that are alike. Equal bits count,
// whatever they are: tensors that may be alike by chance are not for this check. Those without elements are
// nobody's, and are like no other.
//
// Not thread-safe. Every rank calls Run the same number of times.
class DistinctCheck {
 public:
  // ranks, silent, all_gather: as of RootExchange. groups: the group of each rank; only ranks of different
  // groups must differ.
  DistinctCheck(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout,
                std::shared_ptr<SilentRanks> silent, std::vector<int64_t> groups,
                RootExchange::AllGather all_gather = nullptr);

  // Returns ALL_DISTINCT, DIFFERENT from what was configured, or NOT_COMPARED; of mode DISTINCT, and the same
  // on all ranks that could hear rank 0. culprit_ranks are those that hold the same first tensor. problem:
  // why this rank has no tensors to bring. unmatched: why this would be no pass even if all differ; rank 0's
  // counts.
  CrossCheckVerdict Run(int64_t iteration, const std::vector<NamedTensor>& tensors,
                        const std::string& unmatched, const absl::Status& problem = absl::OkStatus());

 private:
  CrossCheckVerdict BuildVerdict(int64_t iteration, const RootExchange::Contributions& contributions) const;

  const std::vector<int64_t> groups_;
  RootExchange exchange_;
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_DISTINCT_CHECK_H_
