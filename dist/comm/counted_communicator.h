// A communicator that counts what travels by it, for tests.

#ifndef OTT_DIST_COMM_COUNTED_COMMUNICATOR_H_
#define OTT_DIST_COMM_COUNTED_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ott/dist/comm/communicator.h"

namespace ott {

// `count` grows by one with each message and each collective of it and of the groups that Split() makes of
// it, by which it is outlived.
class CountedCommunicator final : public Communicator {
 public:
  using Count = std::shared_ptr<std::atomic<int64_t>>;

  CountedCommunicator(std::unique_ptr<Communicator> ranks, Count count)
      : ranks_(std::move(ranks)), count_(std::move(count)) {}

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  const std::string& host(int rank) const override { return ranks_->host(rank); }
  absl::Status Post(int to, int tag, std::string_view bytes) override {
    return Counted().Post(to, tag, bytes);
  }
  absl::Status Flush(int tag, Deadline deadline) override { return ranks_->Flush(tag, deadline); }
  absl::Status Send(int to, int tag, std::string_view bytes, Deadline deadline) override {
    return Counted().Send(to, tag, bytes, deadline);
  }
  absl::StatusOr<std::string> Receive(int from, int tag, Deadline deadline) override {
    return ranks_->Receive(from, tag, deadline);
  }
  absl::Status Broadcast(int root, std::string* bytes, Deadline deadline) override {
    return Counted().Broadcast(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> Gather(int root, std::string_view bytes,
                                                  Deadline deadline) override {
    return Counted().Gather(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int root, std::string_view bytes,
                                                                           Deadline deadline) override {
    return Counted().GatherAvailable(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes, Deadline deadline) override {
    return Counted().AllGather(bytes, deadline);
  }
  absl::Status AllReduce(const Merge& merge, std::string* bytes, Deadline deadline) override {
    return Counted().AllReduce(merge, bytes, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<double> values, Deadline deadline) override {
    return Counted().AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<float> values, Deadline deadline) override {
    return Counted().AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<int64_t> values, Deadline deadline) override {
    return Counted().AllReduce(reduction, values, deadline);
  }
  absl::Status Barrier(Deadline deadline) override { return Counted().Barrier(deadline); }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    auto group = Counted().Split(color, key, deadline);
    if (!group.ok()) return group.status();
    return std::make_unique<CountedCommunicator>(*std::move(group), count_);
  }

 private:
  Communicator& Counted() {
    ++*count_;
    return *ranks_;
  }

  const std::unique_ptr<Communicator> ranks_;
  const Count count_;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_COUNTED_COMMUNICATOR_H_
