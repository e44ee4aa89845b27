#include "ott/dist/comm/tcp_communicator.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/host_name.h"
#include "ott/dist/comm/mailbox.h"
#include "ott/dist/comm/message_communicator.h"
#include "ott/dist/comm/socket.h"
#include "tcp_rendezvous.h"

namespace ott {
namespace {

// In front of each message.
struct Header {
  Channel channel;
  uint64_t size = 0;
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(int rank, std::vector<Socket> sockets) : rank_(rank), peers_(sockets.size()) {
    for (size_t peer = 0; peer < sockets.size(); ++peer) peers_[peer].socket = std::move(sockets[peer]);
  }

  ~TcpTransport() override {
    const Deadline deadline = Deadline::After(std::chrono::seconds(1));
    const auto is_leaving = [](const Peer& peer) { return !peer.leaving.empty(); };
    for (Move(); std::any_of(peers_.begin(), peers_.end(), is_leaving) && !deadline.Passed(); Move()) {
      AwaitMovement(deadline);
    }
    // What was sent still arrives; closing with bytes unread would throw it away.
    for (Peer& peer : peers_) {
      if (peer.socket.is_open()) shutdown(peer.socket.fd(), SHUT_WR);
    }
    Move();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::string host() const override { return HostName(); }

  absl::Status Post(int to, Channel channel, std::string_view bytes) override {
    if (to == rank_) {
      mailbox_.Put(rank_, channel, std::string(bytes));
      return absl::OkStatus();
    }
    Peer& peer = peers_[to];
    // As with a message that is on its way to a rank that ends.
    if (!peer.socket.is_open()) return absl::OkStatus();
    const Header header = {channel, bytes.size()};
    Leaving& leaving = peer.leaving.emplace_back();
    leaving.channel = channel;
    leaving.bytes.reserve(sizeof(header) + bytes.size());
    leaving.bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
    leaving.bytes.append(bytes);
    Move();
    return absl::OkStatus();
  }

  absl::Status Flush(Channel channel, Deadline deadline) override {
    const auto holds_it = [&](const Peer& peer) {
      return std::any_of(peer.leaving.begin(), peer.leaving.end(),
                         [&](const Leaving& leaving) { return leaving.channel == channel; });
    };
    while (true) {
      Move();
      if (std::none_of(peers_.begin(), peers_.end(), holds_it)) return absl::OkStatus();
      if (deadline.Passed()) return absl::DeadlineExceededError("not sent");
      AwaitMovement(deadline);
    }
  }

  absl::StatusOr<std::string> Receive(int from, Channel channel, Deadline deadline) override {
    while (true) {
      Move();
      if (std::optional<std::string> bytes = mailbox_.Take(from, channel)) return *std::move(bytes);
      if (from != rank_ && !peers_[from].socket.is_open()) {
        return absl::UnavailableError("the connection is closed: the rank has ended");
      }
      if (deadline.Passed()) return absl::DeadlineExceededError("nothing received");
      AwaitMovement(deadline);
    }
  }

  void DropBefore(Channel channel) override { mailbox_.DropBefore(channel); }

 private:
  struct Leaving {
    Channel channel;
    std::string bytes;
  };
  struct Peer {
    Socket socket;
    std::deque<Leaving> leaving;
    size_t num_sent = 0;  // of the first
    // Of messages that are not complete, from `begin` on.
    std::string arriving;
    size_t begin = 0;
  };

  void AwaitMovement(Deadline deadline) const {
    std::vector<pollfd> sockets;
    for (const Peer& peer : peers_) {
      if (!peer.socket.is_open()) continue;
      sockets.push_back(
          {peer.socket.fd(), static_cast<short>(peer.leaving.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    }
    Wait(sockets, deadline);
  }

  // Moves on whatever can move.
  void Move() {
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      Peer& peer = peers_[rank];
      if (!peer.socket.is_open()) continue;
      // What a rank sent before it ended is taken first.
      const bool sends = SendTo(peer);
      if (!ReceiveFrom(static_cast<int>(rank), peer) || !sends) {
        peer.socket.Close();
        peer.leaving.clear();
      }
    }
  }

  // Whether the connection is still there.
  static bool SendTo(Peer& peer) {
    while (!peer.leaving.empty()) {
      const std::string& bytes = peer.leaving.front().bytes;
      const absl::StatusOr<size_t> sent = peer.socket.SendSome(std::string_view(bytes).substr(peer.num_sent));
      if (!sent.ok()) return false;
      peer.num_sent += *sent;
      if (peer.num_sent < bytes.size()) return true;
      peer.leaving.pop_front();
      peer.num_sent = 0;
    }
    return true;
  }

  bool ReceiveFrom(int rank, Peer& peer) {
    while (true) {
      // A long message is received where it will lie.
      const size_t missing = NumMissing(peer);
      const bool is_long = missing > buffer_.size();
      const size_t filled = peer.arriving.size();
      if (is_long) peer.arriving.resize(filled + missing);
      char* const target = is_long ? &peer.arriving[filled] : buffer_.data();
      const size_t room = is_long ? missing : buffer_.size();
      const absl::StatusOr<size_t> received = peer.socket.ReceiveSome(target, room);
      if (is_long) {
        peer.arriving.resize(filled + received.value_or(0));
      } else {
        peer.arriving.append(target, received.value_or(0));
      }
      Deliver(rank, peer);
      if (!received.ok()) return false;
      if (*received < room) return true;
    }
  }

  // Bytes of the message that has begun to arrive.
  static size_t NumMissing(const Peer& peer) {
    const size_t available = peer.arriving.size() - peer.begin;
    if (available < sizeof(Header)) return 0;
    Header header;
    std::memcpy(&header, peer.arriving.data() + peer.begin, sizeof(header));
    return sizeof(header) + header.size - available;
  }

  void Deliver(int rank, Peer& peer) {
    Header header;
    while (peer.arriving.size() - peer.begin >= sizeof(header)) {
      std::memcpy(&header, peer.arriving.data() + peer.begin, sizeof(header));
      if (peer.arriving.size() - peer.begin - sizeof(header) < header.size) break;
      mailbox_.Put(rank, header.channel, peer.arriving.substr(peer.begin + sizeof(header), header.size));
      peer.begin += sizeof(header) + header.size;
    }
    peer.arriving.erase(0, peer.begin);
    peer.begin = 0;
  }

  const int rank_;
  std::vector<Peer> peers_;
  std::vector<char> buffer_ = std::vector<char>(64 << 10);
  Mailbox mailbox_;
};

absl::StatusOr<int> IntegerFromEnvironment(const char* name) {
  const char* const text = std::getenv(name);
  int value = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &value) || value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the environment variable ", name, " is ",
                     text == nullptr ? "not set" : absl::StrCat("\"", text, "\""),
                     "; start the program with torchrun, or set it"));
  }
  return value;
}

}  // namespace

absl::StatusOr<TcpOptions> TcpOptionsFromEnvironment() {
  TcpOptions options;
  const char* const address = std::getenv("MASTER_ADDR");
  if (address == nullptr) {
    return absl::InvalidArgumentError(
        "the environment variable MASTER_ADDR is not set; start the program with torchrun, or set it");
  }
  options.address = address;
  OTT_ASSIGN_OR_RETURN(
      options.port,
      IntegerFromEnvironment(std::getenv("OTT_MASTER_PORT") != nullptr ? "OTT_MASTER_PORT" : "MASTER_PORT"));
  OTT_ASSIGN_OR_RETURN(options.rank, IntegerFromEnvironment("RANK"));
  OTT_ASSIGN_OR_RETURN(options.world_size, IntegerFromEnvironment("WORLD_SIZE"));
  return options;
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateTcpCommunicator(const TcpOptions& options) {
  const Deadline deadline = Deadline::After(options.timeout);
  OTT_ASSIGN_OR_RETURN(std::vector<Socket> sockets, ConnectRanks(options, deadline));
  return MakeMessageCommunicator(std::make_shared<TcpTransport>(options.rank, std::move(sockets)), deadline);
}

}  // namespace ott
