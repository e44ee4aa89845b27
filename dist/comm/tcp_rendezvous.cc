#include "dist/comm/tcp_rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

constexpr char kMagic[8] = {'o', 't', 't', '-', 't', 'c', 'p', '3'};

// The first message of a rank on each connection that it makes.
struct Hello {
  char magic[sizeof(kMagic)] = {};
  // To rank 0: of the job's name; to others: what rank 0 gave out for this time.
  uint64_t token = 0;
  int32_t world_size = 0;
  int32_t rank = 0;
  // The port where it listens itself.
  int32_t port = 0;
  int32_t unused = 0;
  ProcessStart start;
};

// Rank 0's answer; then `size` bytes, which are the token and a SocketAddress for each rank, or an error's
// message.
struct Reply {
  char magic[sizeof(kMagic)] = {};
  int32_t status_code = 0;
  int32_t size = 0;
};

template <typename T>
std::string ToBytes(T message) {
  std::memcpy(message.magic, kMagic, sizeof(kMagic));
  return std::string(reinterpret_cast<const char*>(&message), sizeof(message));
}

template <typename T>
T FromBytes(std::string_view bytes) {
  T message;
  std::memcpy(&message, bytes.data(), sizeof(message));
  return message;
}

bool HasMagic(const char* magic) { return std::memcmp(magic, kMagic, sizeof(kMagic)) == 0; }

std::string AnswerWith(absl::StatusCode code, const std::string& payload) {
  Reply answer;
  answer.status_code = static_cast<int32_t>(code);
  answer.size = static_cast<int32_t>(payload.size());
  return ToBytes(answer) + payload;
}

// FNV-1a, which is the same in every build.
uint64_t TokenOf(std::string_view job) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

uint64_t TokenOf(const TcpOptions& options) {
  return TokenOf(options.job.empty() ? absl::StrCat("port ", options.port) : options.job);
}

struct Peer {
  Socket socket;
  int port = 0;
  // The process that started this one started it, too.
  bool is_sibling = false;
};

// A rank of the same host that another process started than rank 0 may be of another job, if neither has a
// name. It gets its place only if no other rank claims that for so long, so that ranks started by hand find
// each other, too. It gets none while rank 0 has siblings that may be the right rank, nor if the process that
// started it started a rank 0.
constexpr std::chrono::nanoseconds kDoubt = std::chrono::seconds(3);

// Reads a file of /proc, which says that it has no bytes, up to 4 KiB. Empty for one that is not there.
std::string ReadProcFile(const std::string& path) {
  std::string bytes(4096, '\0');
  std::ifstream file(path);
  // Unlike iterators, it does not throw where the process has ended.
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(file.gcount());
  return bytes;
}

// Splits /proc/PID/stat behind the name in parentheses: the state is 0, the parent 1, the start 19.
std::vector<std::string> ReadStat(const std::string& pid) {
  const std::string stat = ReadProcFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(stat.substr(name_end + 2), ' ');
}

// Returns how many other children the process that started this one has.
int NumSiblings() {
  const std::string parent = absl::StrCat(getppid());
  int num_children = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const std::string pid = process->path().filename();
    if (!absl::ascii_isdigit(pid[0])) continue;  // "self" and "thread-self" are this process once more
    const std::vector<std::string> stat = ReadStat(pid);
    if (stat.size() > 1 && stat[1] == parent && stat[0] != "Z") ++num_children;
  }
  return num_children - 1;
}

// The ranks that connect to one of them.
class Acceptor {
 public:
  // Awaits ranks first_awaited to world_size - 1.
  Acceptor(const Socket& listener, uint64_t token, int world_size, int first_awaited)
      : listener_(listener), token_(token), first_awaited_(first_awaited), peers_(world_size) {}

  // Lets ranks of another start wait for so long.
  void DoubtOtherStarts(std::chrono::nanoseconds doubt) {
    start_ = StartOfThisProcess();
    doubt_ = doubt;
  }

  absl::Status AwaitAll(Deadline deadline) {
    while (true) {
      OTT_RETURN_IF_ERROR(AcceptPending());
      const bool is_last_chance = deadline.Passed();
      AdmitDoubtful(is_last_chance);
      const std::vector<int> missing = Missing();
      if (missing.empty()) return absl::OkStatus();
      if (is_last_chance) {
        return absl::DeadlineExceededError(absl::StrCat(
            "nothing from ", FormatRanks(missing), " on port ", listener_.LocalPort(), " within ",
            deadline.Seconds(), " s", refusals_.empty() ? "" : "; refused: ", refusals_));
      }
      std::vector<pollfd> sockets = {{listener_.fd(), POLLIN, 0}};
      for (const PendingPeer& peer : pending_) sockets.push_back({peer.socket.fd(), POLLIN, 0});
      for (const DoubtfulPeer& peer : doubtful_) sockets.push_back({peer.socket.fd(), POLLIN, 0});
      const bool awaits_doubt = DoubtfulComplete() && doubt_ends_.time() < deadline.time();
      Wait(sockets, awaits_doubt ? doubt_ends_ : deadline);
    }
  }

  // Reaches everyone who is here.
  void Broadcast(const std::string& bytes, Deadline deadline) {
    for (const Peer& peer : peers_) peer.socket.SendAll(bytes, deadline).IgnoreError();
  }

  // Also where not all came. A rank that is refused is among them, if there is a place for it.
  std::vector<Peer>& peers() { return peers_; }

 private:
  // A peer that has not said yet who it is.
  struct PendingPeer {
    Socket socket;
    std::string hello;
  };

  // A peer that may be of another job.
  struct DoubtfulPeer {
    Hello hello;
    Socket socket;
  };

  std::vector<int> Missing() const {
    std::vector<int> missing;
    for (size_t rank = first_awaited_; rank < peers_.size(); ++rank) {
      if (!peers_[rank].socket.is_open()) missing.push_back(static_cast<int>(rank));
    }
    return missing;
  }

  absl::Status AcceptPending() {
    while (true) {
      absl::StatusOr<Socket> socket = listener_.Accept();
      if (!socket.ok()) {
        // Ranks say at once who they are.
        ReadPending();
        if (!CloseOldestStranger()) return socket.status();
        continue;
      }
      if (!socket->is_open()) break;
      pending_.push_back({*std::move(socket), ""});
    }
    ReadPending();
    return absl::OkStatus();
  }

  // First those that were told why they are refused: who has said nothing yet may be a rank.
  bool CloseOldestStranger() {
    if (!refused_.empty()) {
      refused_.erase(refused_.begin());
    } else if (!pending_.empty()) {
      pending_.erase(pending_.begin());
    } else {
      return false;
    }
    return true;
  }

  void ReadPending() {
    for (auto peer = pending_.begin(); peer != pending_.end();) {
      char buffer[sizeof(Hello)];
      const absl::StatusOr<size_t> received =
          peer->socket.ReceiveSome(buffer, sizeof(buffer) - peer->hello.size());
      if (received.ok()) peer->hello.append(buffer, *received);
      // Whoever says something else is none of us.
      const size_t num_magic = std::min(peer->hello.size(), sizeof(kMagic));
      const bool is_foreign = std::memcmp(peer->hello.data(), kMagic, num_magic) != 0;
      if (received.ok() && !is_foreign && peer->hello.size() < sizeof(Hello)) {
        ++peer;
        continue;
      }
      if (received.ok() && !is_foreign) {
        Admit(FromBytes<Hello>(peer->hello), std::move(peer->socket));
      }
      peer = pending_.erase(peer);
    }
  }

  // Returns true if each rank that is missing is claimed by one that may be of another job.
  bool DoubtfulComplete() const {
    std::set<int> claimed;
    for (const DoubtfulPeer& peer : doubtful_) claimed.insert(peer.hello.rank);
    return !claimed.empty() && claimed.size() == Missing().size();
  }

  // Admits the doubtful peers that complete the ranks, if nobody else has claimed their places.
  void AdmitDoubtful(bool is_last_chance) {
    for (auto peer = doubtful_.begin(); peer != doubtful_.end();) {
      char byte;
      const bool is_gone = !peer->socket.ReceiveSome(&byte, 1).ok();
      const bool is_other = launchers_of_others_.count(peer->hello.start.launcher) > 0;
      const bool is_taken = peers_[peer->hello.rank].socket.is_open();
      if (is_other) {
        Refuse(
            absl::StrCat("rank ", peer->hello.rank,
                         " was started with a rank 0 of its own, which found the port taken; where two jobs "
                         "use one port, set OTT_JOB_ID for each"),
            std::move(peer->socket));
      } else if (is_taken) {
        Seat(peer->hello, std::move(peer->socket));
      }
      peer = is_gone || is_other || is_taken ? doubtful_.erase(peer) : std::next(peer);
    }
    if (!is_last_chance) {
      if (!DoubtfulComplete() || !doubt_ends_.Passed()) return;
      const auto is_here = [](const Peer& peer) { return peer.is_sibling && peer.socket.is_open(); };
      if (NumSiblings() > std::count_if(peers_.begin(), peers_.end(), is_here)) {
        doubt_ends_ = Deadline::After(doubt_);
        return;
      }
    }
    std::vector<DoubtfulPeer> admitted;
    admitted.swap(doubtful_);
    for (DoubtfulPeer& peer : admitted) Seat(peer.hello, std::move(peer.socket));
  }

  // A peer that is none of those that are awaited is told so, and takes nothing from the others.
  void Admit(const Hello& hello, Socket socket) {
    if (hello.token != token_) return;  // of another job
    const auto world_size = static_cast<int>(peers_.size());
    const bool is_awaited = hello.rank >= first_awaited_ && hello.rank < world_size;
    if (hello.world_size != world_size) {
      Refuse(absl::StrCat("rank ", hello.rank, " was started with world size ", hello.world_size,
                          ", rank 0 with ", world_size),
             std::move(socket));
    } else if (IsOfAnotherStart(hello) && hello.rank == 0) {
      launchers_of_others_.insert(hello.start.launcher);
    } else if (IsOfAnotherStart(hello) && is_awaited) {
      doubtful_.push_back({hello, std::move(socket)});
      doubt_ends_ = Deadline::After(doubt_);
    } else {
      Seat(hello, std::move(socket));
    }
  }

  // Nobody is, unless this rank doubts: hosts that are not known have no launcher either.
  bool IsOfAnotherStart(const Hello& hello) const {
    return hello.start.host == start_.host && hello.start.launcher != start_.launcher;
  }

  void Seat(const Hello& hello, Socket socket) {
    const bool is_awaited = hello.rank >= first_awaited_ && hello.rank < static_cast<int>(peers_.size());
    if (is_awaited && !peers_[hello.rank].socket.is_open()) {
      const bool is_sibling = hello.start.host == start_.host && hello.start.launcher == start_.launcher;
      peers_[hello.rank] = {std::move(socket), hello.port, is_sibling};
      return;
    }
    Refuse(
        absl::StrCat("rank ", hello.rank,
                     " is there twice; does RANK differ between the processes? Where two jobs use one port, "
                     "set OTT_JOB_ID for each"),
        std::move(socket));
  }

  void Refuse(const std::string& why, Socket socket) {
    // A new socket has room for it; if not, it is not worth waiting for.
    socket.SendAll(AnswerWith(absl::StatusCode::kInvalidArgument, why), Deadline::Now()).IgnoreError();
    constexpr size_t kMaxBytes = 1000;
    if (refusals_.size() < kMaxBytes) absl::StrAppend(&refusals_, refusals_.empty() ? "" : ", ", why);
    shutdown(socket.fd(), SHUT_WR);
    refused_.push_back(std::move(socket));
  }

  const Socket& listener_;
  const uint64_t token_;
  const int first_awaited_;
  std::vector<Peer> peers_;
  std::vector<PendingPeer> pending_;
  ProcessStart start_;
  std::chrono::nanoseconds doubt_{0};
  Deadline doubt_ends_ = Deadline::Now();
  // The processes that started ranks 0 that found the port taken.
  std::set<uint64_t> launchers_of_others_;
  std::vector<DoubtfulPeer> doubtful_;
  std::vector<Socket> refused_;  // until they have read why
  std::string refusals_;
};

std::vector<Socket> TakeSockets(std::vector<Peer>& peers) {
  std::vector<Socket> sockets;
  for (Peer& peer : peers) sockets.push_back(std::move(peer.socket));
  return sockets;
}

// Time that is left to tell the others, too, what went wrong.
constexpr std::chrono::nanoseconds kTimeToBroadcast = std::chrono::seconds(1);

Hello HelloOf(const TcpOptions& options) {
  Hello hello;
  hello.token = TokenOf(options);
  hello.world_size = options.world_size;
  hello.rank = options.rank;
  hello.start = StartOfThisProcess();
  return hello;
}

// Tells the rank 0 that has the port, if it is one, that ranks of this start are none of its own.
void TellRankZero(const TcpOptions& options, const SocketAddress& address, Deadline deadline) {
  const absl::StatusOr<Socket> other = Socket::Connect(address, deadline);
  if (other.ok()) other->SendAll(ToBytes(HelloOf(options)), deadline).IgnoreError();
}

absl::StatusOr<std::vector<Socket>> ConnectRankZero(const TcpOptions& options, const SocketAddress& address,
                                                    Deadline deadline) {
  absl::StatusOr<Socket> listener = Socket::Listen(address.family(), options.port);
  if (absl::IsAlreadyExists(listener.status())) {
    if (options.job.empty()) TellRankZero(options, address, Deadline::After(kTimeToBroadcast));
    return absl::AlreadyExistsError(
        absl::StrCat(listener.status().message(),
                     "; torchrun's own store listens at MASTER_PORT: set OTT_MASTER_PORT to a free one"));
  }
  if (!listener.ok()) return listener.status();
  Acceptor acceptor(*listener, TokenOf(options), options.world_size, 1);
  const std::chrono::nanoseconds remaining = deadline.Remaining();
  if (options.job.empty()) acceptor.DoubtOtherStarts(std::min(kDoubt, remaining / 4));
  const Deadline before = Deadline::After(remaining - std::min(remaining / 8, kTimeToBroadcast));
  if (const absl::Status status = acceptor.AwaitAll(before); !status.ok()) {
    acceptor.Broadcast(AnswerWith(status.code(), std::string(status.message())),
                       Deadline::After(kTimeToBroadcast));
    return status;
  }
  const uint64_t token = std::uniform_int_distribution<uint64_t>(1)(*std::make_unique<std::random_device>());
  std::string table(reinterpret_cast<const char*>(&token), sizeof(token));
  for (const Peer& peer : acceptor.peers()) {
    SocketAddress where;  // rank 0's is known
    if (peer.socket.is_open()) {
      OTT_ASSIGN_OR_RETURN(where, peer.socket.Peer());
      where.SetPort(peer.port);
    }
    table.append(reinterpret_cast<const char*>(&where), sizeof(where));
  }
  acceptor.Broadcast(AnswerWith(absl::StatusCode::kOk, table), deadline);
  return TakeSockets(acceptor.peers());
}

// Rank 0's table.
absl::StatusOr<std::string> ReceiveTable(const Socket& root, const std::string& where, int world_size,
                                         Deadline deadline) {
  const auto foreign = [&where](const std::string& why) {
    return absl::UnavailableError(absl::StrCat("what listens at ", where, " is no rank 0 of this job, ", why,
                                               "; set OTT_MASTER_PORT to a free port"));
  };
  const absl::StatusOr<std::string> bytes = root.ReceiveExactly(sizeof(Reply), deadline);
  if (absl::IsDeadlineExceeded(bytes.status())) {
    return absl::DeadlineExceededError(
        absl::StrCat("connected to ", where, ", but no answer of rank 0 within ", deadline.Seconds(),
                     " s; if another program listens there, set OTT_MASTER_PORT to a free port"));
  }
  if (!bytes.ok()) return foreign(std::string(bytes.status().message()));
  const auto answer = FromBytes<Reply>(*bytes);
  const auto code = static_cast<absl::StatusCode>(answer.status_code);
  const size_t table_size = sizeof(uint64_t) + world_size * sizeof(SocketAddress);
  constexpr int32_t kLongestMessage = 1 << 20;
  if (!HasMagic(answer.magic) || answer.size < 0 ||
      answer.size > kLongestMessage + static_cast<int32_t>(table_size)) {
    return foreign("it says something else");
  }
  OTT_ASSIGN_OR_RETURN(std::string payload, root.ReceiveExactly(answer.size, deadline));
  if (code != absl::StatusCode::kOk)
    return absl::Status(code, absl::StrCat("rank 0 at ", where, ": ", payload));
  if (payload.size() != table_size) return foreign("its table is of another world size");
  return payload;
}

absl::StatusOr<std::vector<Socket>> ConnectOther(const TcpOptions& options, const SocketAddress& address,
                                                 Deadline deadline) {
  absl::StatusOr<Socket> root = Socket::Connect(address, deadline);
  if (!root.ok())
    return absl::Status(root.status().code(), absl::StrCat("rank 0: ", root.status().message()));
  OTT_ASSIGN_OR_RETURN(const Socket listener, Socket::Listen(address.family(), 0));
  Hello hello = HelloOf(options);
  hello.port = listener.LocalPort();
  OTT_RETURN_IF_ERROR(root->SendAll(ToBytes(hello), deadline));
  OTT_ASSIGN_OR_RETURN(const std::string table,
                       ReceiveTable(*root, address.ToString(), options.world_size, deadline));
  std::memcpy(&hello.token, table.data(), sizeof(hello.token));
  OTT_ASSIGN_OR_RETURN(const SocketAddress at_root, root->Peer());

  Acceptor acceptor(listener, hello.token, options.world_size, options.rank + 1);
  std::vector<Peer>& peers = acceptor.peers();
  peers[0].socket = *std::move(root);
  for (int rank = 1; rank < options.rank; ++rank) {
    SocketAddress where;
    std::memcpy(&where, table.data() + sizeof(hello.token) + rank * sizeof(where), sizeof(where));
    if (where.IsLoopback()) {
      // It is on rank 0's host, which is there where this rank reached it: a host may know itself by a name
      // that leads to 127.0.1.1.
      const int port = where.Port();
      where = at_root;
      where.SetPort(port);
    }
    absl::StatusOr<Socket> peer = Socket::Connect(where, deadline);
    if (!peer.ok())
      return absl::Status(peer.status().code(), absl::StrCat("rank ", rank, ": ", peer.status().message()));
    OTT_RETURN_IF_ERROR(peer->SendAll(ToBytes(hello), deadline));
    peers[rank].socket = *std::move(peer);
  }
  OTT_RETURN_IF_ERROR(acceptor.AwaitAll(deadline));
  return TakeSockets(peers);
}

// Each has a connection to each.
constexpr int kMaxWorldSize = 1 << 14;

}  // namespace

ProcessStart StartOfThisProcess() {
  ProcessStart start;
  char pid_namespace[PATH_MAX] = {};
  const std::string boot = ReadProcFile("/proc/sys/kernel/random/boot_id");
  const std::vector<std::string> launcher = ReadStat(absl::StrCat(getppid()));
  if (boot.empty() || readlink("/proc/self/ns/pid", pid_namespace, sizeof(pid_namespace) - 1) < 0)
    return start;
  constexpr size_t kStartTime = 19;
  if (launcher.size() <= kStartTime) return start;
  start.host = TokenOf(absl::StrCat(boot, pid_namespace));
  // A process id may be used again.
  start.launcher = TokenOf(absl::StrCat(getppid(), " ", launcher[kStartTime]));
  return start;
}

absl::StatusOr<std::vector<Socket>> ConnectRanks(const TcpOptions& options, Deadline deadline) {
  if (options.port < 1 || options.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("port ", options.port, ": MASTER_PORT is a number from 1 to 65535"));
  }
  if (options.world_size < 1 || options.world_size > kMaxWorldSize) {
    return absl::InvalidArgumentError(absl::StrCat("world size ", options.world_size,
                                                   ": WORLD_SIZE is a number from 1 to ", kMaxWorldSize));
  }
  if (options.rank < 0 || options.rank >= options.world_size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", options.rank, " of ", options.world_size,
                                                   ": RANK counts from 0 and is less than WORLD_SIZE"));
  }
  absl::StatusOr<std::vector<Socket>> sockets = [&]() -> absl::StatusOr<std::vector<Socket>> {
    OTT_ASSIGN_OR_RETURN(const SocketAddress address, ResolveAddress(options.address, options.port));
    if (options.rank == 0) return ConnectRankZero(options, address, deadline);
    return ConnectOther(options, address, deadline);
  }();
  if (sockets.ok()) return sockets;
  return absl::Status(sockets.status().code(), absl::StrCat("rank ", options.rank, " of ", options.world_size,
                                                            ": TCP: ", sockets.status().message()));
}

}  // namespace ott
