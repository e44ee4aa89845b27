// TCP sockets that wait no longer than a deadline.

#ifndef OTT_DIST_COMM_SOCKET_H_
#define OTT_DIST_COMM_SOCKET_H_

#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/comm/deadline.h"

namespace ott {

// An address of IPv4 or IPv6, with the port.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  int Port() const;
  void SetPort(int port);
  // Returns true if only this host has it: 127.*, ::1.
  bool IsLoopback() const;
  // "10.0.0.7:29500", "[::1]:29500"
  std::string ToString() const;
};

// Returns INVALID_ARGUMENT, naming host and port, where there is no such host.
absl::StatusOr<SocketAddress> ResolveAddress(const std::string& host, int port);

// A non-blocking socket, closed by its destructor. Movable. Thread safety: one call at a time.
class Socket {
 public:
  Socket() = default;
  // Takes fd over.
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  // Listens on all interfaces; port 0: any that is free. ALREADY_EXISTS if another socket has the port.
  static absl::StatusOr<Socket> Listen(int family, int port);
  // Tries again while nobody listens there. DEADLINE_EXCEEDED.
  static absl::StatusOr<Socket> Connect(const SocketAddress& address, Deadline deadline);

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close() { *this = Socket(); }

  absl::StatusOr<SocketAddress> Local() const;
  absl::StatusOr<SocketAddress> Peer() const;
  int LocalPort() const;

  // Returns the next connection; an invalid socket where there is none now. RESOURCE_EXHAUSTED if the process
  // can take none: the connection would otherwise wait for ever.
  absl::StatusOr<Socket> Accept() const;

  // Returns DEADLINE_EXCEEDED; UNAVAILABLE where the other side is gone.
  absl::Status SendAll(std::string_view bytes, Deadline deadline) const;
  absl::StatusOr<std::string> ReceiveExactly(size_t size, Deadline deadline) const;

  // Sends what the socket takes now, and receives what is there now; 0 for nothing. UNAVAILABLE where the
  // other side is gone.
  absl::StatusOr<size_t> SendSome(std::string_view bytes) const;
  absl::StatusOr<size_t> ReceiveSome(char* buffer, size_t size) const;

 private:
  int fd_ = -1;
};

// Waits until one of the sockets is ready for its `events` (poll(2)).
void Wait(std::vector<pollfd>& sockets, Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_COMM_SOCKET_H_
