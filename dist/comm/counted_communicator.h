// A communicator that counts what travels by it, for tests.

#ifndef OTT_DIST_COMM_COUNTED_COMMUNICATOR_H_
#define OTT_DIST_COMM_COUNTED_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ott/dist/comm/forwarding_communicator.h"

namespace ott {

// Counts in `count` each message and each collective of it and of the groups that Split() makes of it.
// `count` outlives this.
class CountedCommunicator final : public ForwardingCommunicator<Communicator> {
 public:
  using Count = std::shared_ptr<std::atomic<int64_t>>;

  CountedCommunicator(std::unique_ptr<Communicator> ranks, Count count)
      : ranks_(std::move(ranks)), count_(std::move(count)) {}

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  const std::string& host(int rank) const override { return ranks_->host(rank); }
  absl::Status Flush(int tag, Deadline deadline) override { return ranks_->Flush(tag, deadline); }
  absl::StatusOr<std::string> Receive(int from, int tag, Deadline deadline) override {
    return ranks_->Receive(from, tag, deadline);
  }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    auto group = To().Split(color, key, deadline);
    if (!group.ok()) return group.status();
    return std::make_unique<CountedCommunicator>(*std::move(group), count_);
  }

 private:
  Communicator& To() const override {
    ++*count_;
    return *ranks_;
  }

  const std::unique_ptr<Communicator> ranks_;
  const Count count_;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_COUNTED_COMMUNICATOR_H_
