// All ranks contribute, rank 0 decides, and all go by its decision.

#ifndef OTT_DIST_CHECK_ROOT_EXCHANGE_H_
#define OTT_DIST_CHECK_ROOT_EXCHANGE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/check/silent_ranks.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

namespace internal {
class RootMessage;

// Tags of what ranks post.
inline constexpr int kToRoot = 0;
inline constexpr int kFromRoot = 1;
}  // namespace internal

// A rank that does not come is missing after half of the timeout, and is not waited for again until something
// comes from it. A rank that receives nothing from rank 0 within the timeout goes on without a decision.
//
// A decision that binds is one that nobody may follow alone, such as to end the training: it is given only if
// all ranks that came say that they still wait for it. A rank that comes later finds it then. So either all
// ranks that are alive follow it, or none does.
//
// Not thread-safe. Every rank calls Exchange the same number of times.
class RootExchange {
 public:
  // Gathers what all ranks brought, in order of rank, by a collective of another kind than messages, such as
  // NCCL's, which all ranks call in each exchange. An error is for good, and ranks that meet it go on by
  // messages.
  using AllGather =
      std::function<absl::StatusOr<std::vector<std::string>>(std::string_view bytes, Deadline deadline)>;

  // ranks: a communicator of its own, from Split(), with the numbers that `silent` goes by. all_gather, which
  // may be null: as long as it works, no messages travel, and each rank decides, on the contributions of all.
  // So decisions must depend on nothing else, and must not bind.
  RootExchange(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout,
               std::shared_ptr<SilentRanks> silent, AllGather all_gather = nullptr);

  struct Contributions {
    std::map<int, std::string> by_rank;
    // Says who is missing, and why; empty if nobody is.
    std::string problem;
  };
  struct Decision {
    std::string contents;
    bool binds = false;
    // The decision instead of one that binds, where some rank no longer waits.
    std::string otherwise;
  };
  using Decide = std::function<Decision(const Contributions&)>;

  // Returns what rank 0 decided: this time, or an earlier time if that binds and was not heard then. decide
  // is called on rank 0. DEADLINE_EXCEEDED if rank 0 was not heard.
  absl::StatusOr<std::string> Exchange(std::string_view mine, const Decide& decide);
  const Communicator& ranks() const { return *ranks_; }

  // Stands for an exchange that all ranks know to be of no use.
  void Skip() { ++round_; }

 private:
  // Decides by all_gather_; nullopt if messages have to do it.
  std::optional<std::string> DecideEverywhere(std::string_view mine, const Decide& decide);
  std::string DecideAsRoot(std::string_view mine, const Decide& decide);
  absl::StatusOr<std::string> AwaitDecision(std::string_view mine);
  Contributions ReceiveAll(std::string_view mine);
  // Returns the next message of this round.
  absl::StatusOr<internal::RootMessage> ReceiveFrom(int rank, Deadline deadline);
  bool AllStillWait(const Contributions& contributions);
  void Post(int rank, const internal::RootMessage& message);

  const std::unique_ptr<Communicator> ranks_;
  const std::chrono::nanoseconds timeout_;
  const std::shared_ptr<SilentRanks> silent_;
  const AllGather all_gather_;
  uint64_t round_ = 0;
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_ROOT_EXCHANGE_H_
