#include "ott/dist/comm/communicator_transport.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/mailbox.h"

namespace ott {
namespace {

// Channels may share a tag: each message says which one it is of. Collectives of a group do, as their numbers
// never end; tags of a group do not, so that one can be flushed without the others.
int TagOf(Channel channel) {
  const bool is_collective = channel.context % 2 == 0;
  const uint64_t mixed = channel.context + (is_collective ? 0 : channel.number * 0x9e3779b97f4a7c15u);
  return static_cast<int>(mixed * 0xbf58476d1ce4e5b9u >> 33);
}

class CommunicatorTransport final : public Transport {
 public:
  explicit CommunicatorTransport(std::unique_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  std::string host() const override { return ranks_->host(rank()); }

  absl::Status Post(int to, Channel channel, std::string_view bytes) override {
    std::string message;
    message.reserve(sizeof(channel) + bytes.size());
    message.append(reinterpret_cast<const char*>(&channel), sizeof(channel));
    message.append(bytes);
    return ranks_->Post(to, TagOf(channel), message);
  }

  absl::Status Flush(Channel channel, Deadline deadline) override {
    return ranks_->Flush(TagOf(channel), deadline);
  }

  absl::StatusOr<std::string> Receive(int from, Channel channel, Deadline deadline) override {
    while (true) {
      if (std::optional<std::string> bytes = mailbox_.Take(from, channel)) return *std::move(bytes);
      OTT_ASSIGN_OR_RETURN(std::string message, ranks_->Receive(from, TagOf(channel), deadline));
      Channel of_message;
      OTT_CHECK(message.size() >= sizeof(of_message)) << message.size() << " bytes from rank " << from;
      std::memcpy(&of_message, message.data(), sizeof(of_message));
      message.erase(0, sizeof(of_message));
      mailbox_.Put(from, of_message, std::move(message));
    }
  }

  void DropBefore(Channel channel) override { mailbox_.DropBefore(channel); }

 private:
  const std::unique_ptr<Communicator> ranks_;
  Mailbox mailbox_;
};

}  // namespace

std::shared_ptr<Transport> MakeTransportOver(std::unique_ptr<Communicator> ranks) {
  return std::make_shared<CommunicatorTransport>(std::move(ranks));
}

}  // namespace ott
