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
#include "dist/comm/tcp_rendezvous.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/host_name.h"
#include "ott/dist/comm/mailbox.h"
#include "ott/dist/comm/message_communicator.h"
#include "ott/dist/comm/slurm.h"
#include "ott/dist/comm/socket.h"

namespace ott {
namespace {

// In front of each message.
struct Header {
  Channel channel;
  uint64_t size = 0;
};
constexpr uint64_t kLargestMessage = uint64_t{1} << 40;

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
    // Messages that were sent still arrive; closing with bytes unread would throw them away.
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
    // The message is lost, like one that is on its way to a rank that ends.
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
    // The header of the message that arrives.
    Header header;
    size_t num_header = 0;  // bytes of it that are there
    std::string message;    // as far as there is room for it
    size_t num_message = 0;
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
      // Takes first what a rank sent before it ended.
      const bool sends = SendTo(peer);
      if (!ReceiveFrom(static_cast<int>(rank), peer) || !sends) {
        peer.socket.Close();
        peer.leaving.clear();
      }
    }
  }

  // Returns true if the connection is still there.
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

  // Takes what a rank says; returns true if the connection is still there.
  bool ReceiveFrom(int rank, Peer& peer) {
    while (true) {
      // A long message is received where it will lie.
      const bool has_header = peer.num_header == sizeof(Header);
      const bool is_long = has_header && peer.header.size - peer.num_message > buffer_.size();
      if (is_long) MakeRoom(peer);
      char* const target = is_long ? &peer.message[peer.num_message] : buffer_.data();
      const size_t room = is_long ? peer.message.size() - peer.num_message : buffer_.size();
      const absl::StatusOr<size_t> received = peer.socket.ReceiveSome(target, room);
      if (!received.ok()) return false;
      if (is_long) {
        peer.num_message += *received;
        DeliverIfComplete(rank, peer);
      } else if (!Take(rank, std::string_view(target, *received), peer)) {
        return false;
      }
      if (*received < room) return true;
    }
  }

  // For more of the message: as much again as has come, so that a size that is none takes no memory.
  void MakeRoom(Peer& peer) const {
    if (peer.num_message < peer.message.size()) return;
    const size_t more = std::max(peer.num_message, buffer_.size());
    peer.message.resize(std::min<size_t>(peer.header.size, peer.num_message + more));
  }

  // Bytes of a long message's end, of short messages, and of the beginning of one. False for a size that no
  // message has.
  bool Take(int rank, std::string_view bytes, Peer& peer) {
    while (!bytes.empty()) {
      if (peer.num_header < sizeof(Header)) {
        const size_t size = std::min(bytes.size(), sizeof(Header) - peer.num_header);
        std::memcpy(reinterpret_cast<char*>(&peer.header) + peer.num_header, bytes.data(), size);
        peer.num_header += size;
        bytes.remove_prefix(size);
        if (peer.num_header < sizeof(Header)) return true;
        if (peer.header.size > kLargestMessage) return false;
      }
      const size_t size = std::min<size_t>(bytes.size(), peer.header.size - peer.num_message);
      peer.message.resize(peer.num_message);
      peer.message.append(bytes.substr(0, size));
      peer.num_message += size;
      bytes.remove_prefix(size);
      DeliverIfComplete(rank, peer);
    }
    return true;
  }

  void DeliverIfComplete(int rank, Peer& peer) {
    if (peer.num_message < peer.header.size) return;
    mailbox_.Put(rank, peer.header.channel, std::exchange(peer.message, {}));
    peer.num_header = 0;
    peer.num_message = 0;
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
  // A launcher that srun started, such as torchrun, sets its own variables, which go before.
  if (const std::optional<SlurmTask> task = SlurmTaskFromEnvironment();
      task.has_value() && std::getenv("RANK") == nullptr && std::getenv("WORLD_SIZE") == nullptr) {
    const char* const address = std::getenv("MASTER_ADDR");
    options.address = address != nullptr ? address : task->first_node;
    options.port = task->Port();
    if (std::getenv("MASTER_PORT") != nullptr) {
      OTT_ASSIGN_OR_RETURN(options.port, IntegerFromEnvironment("MASTER_PORT"));
    }
    options.rank = task->rank;
    options.world_size = task->num_tasks;
    options.job = task->Name();
    return options;
  }
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
  for (const char* const name :
       {"OTT_JOB_ID", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
    const char* const job = std::getenv(name);
    // "none" is torchrun's where it is given none.
    if (job == nullptr || *job == '\0' || std::string_view(job) == "none") continue;
    options.job = job;
    break;
  }
  const char* const store = std::getenv("MASTER_PORT");
  if (options.job.empty() && store != nullptr && std::getenv("OTT_MASTER_PORT") != nullptr) {
    options.job = absl::StrCat("MASTER_PORT ", store);  // one job's store listens there
  }
  OTT_ASSIGN_OR_RETURN(options.world_size, IntegerFromEnvironment("WORLD_SIZE"));
  return options;
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateTcpCommunicator(const TcpOptions& options) {
  const Deadline deadline = Deadline::After(options.timeout);
  OTT_ASSIGN_OR_RETURN(std::vector<Socket> sockets, ConnectRanks(options, deadline));
  return MakeMessageCommunicator(std::make_shared<TcpTransport>(options.rank, std::move(sockets)), deadline);
}

}  // namespace ott
