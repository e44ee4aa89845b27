// The base of communicators that stand in front of another one.

#ifndef OTT_DIST_COMM_FORWARDING_COMMUNICATOR_H_
#define OTT_DIST_COMM_FORWARDING_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ott/dist/comm/communicator.h"

namespace ott {

// Passes on all calls that a derived class leaves as they are. Base: Communicator, or derived from it.
template <typename Base>
class ForwardingCommunicator : public Base {
 public:
  int rank() const override { return To().rank(); }
  int size() const override { return To().size(); }
  const std::string& host(int rank) const override { return To().host(rank); }
  absl::Status Post(int to, int tag, std::string_view bytes) override { return To().Post(to, tag, bytes); }
  absl::Status Flush(int tag, Deadline deadline) override { return To().Flush(tag, deadline); }
  absl::Status Send(int to, int tag, std::string_view bytes, Deadline deadline) override {
    return To().Send(to, tag, bytes, deadline);
  }
  absl::StatusOr<std::string> Receive(int from, int tag, Deadline deadline) override {
    return To().Receive(from, tag, deadline);
  }
  absl::Status Broadcast(int root, std::string* bytes, Deadline deadline) override {
    return To().Broadcast(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> Gather(int root, std::string_view bytes,
                                                  Deadline deadline) override {
    return To().Gather(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int root, std::string_view bytes,
                                                                           Deadline deadline) override {
    return To().GatherAvailable(root, bytes, deadline);
  }
  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes, Deadline deadline) override {
    return To().AllGather(bytes, deadline);
  }
  absl::Status AllReduce(const Communicator::Merge& merge, std::string* bytes, Deadline deadline) override {
    return To().AllReduce(merge, bytes, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<double> values, Deadline deadline) override {
    return To().AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<float> values, Deadline deadline) override {
    return To().AllReduce(reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<int64_t> values, Deadline deadline) override {
    return To().AllReduce(reduction, values, deadline);
  }
  absl::Status Barrier(Deadline deadline) override { return To().Barrier(deadline); }
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    return To().Split(color, key, deadline);
  }

 private:
  // Returns the communicator to which a call goes.
  virtual Communicator& To() const = 0;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_FORWARDING_COMMUNICATOR_H_
