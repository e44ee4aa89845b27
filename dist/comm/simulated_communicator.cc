#include "ott/dist/comm/simulated_communicator.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "ott/dist/comm/mailbox.h"
#include "ott/dist/comm/message_communicator.h"

namespace ott {
namespace {

struct Inbox {
  std::mutex mutex;
  std::condition_variable arrived;
  Mailbox mailbox;
};

struct World {
  std::vector<std::string> hosts;
  std::deque<Inbox> inboxes;  // one a rank
};

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(std::shared_ptr<World> world, int rank)
      : world_(std::move(world)), rank_(rank), inbox_(world_->inboxes[rank]) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_->hosts.size()); }
  std::string host() const override { return world_->hosts[rank_]; }

  absl::Status Post(int to, Channel channel, std::string_view bytes) override {
    Inbox& inbox = world_->inboxes[to];
    {
      const std::lock_guard<std::mutex> lock(inbox.mutex);
      inbox.mailbox.Put(rank_, channel, std::string(bytes));
    }
    inbox.arrived.notify_one();
    return absl::OkStatus();
  }

  absl::Status Flush(Channel, Deadline) override { return absl::OkStatus(); }

  absl::StatusOr<std::string> Receive(int from, Channel channel, Deadline deadline) override {
    std::unique_lock<std::mutex> lock(inbox_.mutex);
    while (true) {
      if (std::optional<std::string> bytes = inbox_.mailbox.Take(from, channel)) return *std::move(bytes);
      if (deadline.Passed()) return absl::DeadlineExceededError("nothing received");
      if (deadline.IsNever()) {
        inbox_.arrived.wait(lock);
      } else {
        inbox_.arrived.wait_until(lock, deadline.time());
      }
    }
  }

  void DropBefore(Channel channel) override {
    const std::lock_guard<std::mutex> lock(inbox_.mutex);
    inbox_.mailbox.DropBefore(channel);
  }

 private:
  const std::shared_ptr<World> world_;
  const int rank_;
  Inbox& inbox_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> CreateSimulatedCommunicators(std::vector<std::string> hosts) {
  const auto world = std::make_shared<World>();
  world->hosts = std::move(hosts);
  world->inboxes.resize(world->hosts.size());
  const std::shared_ptr<const Group> group = MakeGroup(world->hosts);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (size_t rank = 0; rank < world->hosts.size(); ++rank) {
    ranks.push_back(
        MakeMessageCommunicator(std::make_shared<SimulatedTransport>(world, static_cast<int>(rank)), group));
  }
  return ranks;
}

}  // namespace ott
