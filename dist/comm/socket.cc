#include "ott/dist/comm/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

absl::Status SystemError(const std::string& what) {
  const int error = errno;
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  if (error == EMFILE || error == ENFILE) {
    return absl::ResourceExhaustedError(absl::StrCat(
        message, "; raise the limit of open files (ulimit -n), of which each other rank needs one"));
  }
  if (error == ENOBUFS || error == ENOMEM) return absl::ResourceExhaustedError(message);
  return absl::UnavailableError(message);
}

template <typename GetName>
absl::StatusOr<SocketAddress> NameOf(int fd, GetName get_name) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (get_name(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    return SystemError("address of a socket");
  }
  return address;
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void WaitFor(int fd, short events, Deadline deadline) {
  std::vector<pollfd> one = {{fd, events, 0}};
  Wait(one, deadline);
}

}  // namespace

void SocketAddress::SetPort(int port) {
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(static_cast<uint16_t>(port));
  }
}

int SocketAddress::Port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

bool SocketAddress::IsLoopback() const {
  constexpr uint32_t kLoopbackNet = 127;
  if (family() == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) ||
         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == kLoopbackNet);
}

std::string SocketAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, text, sizeof(text));
    return absl::StrCat("[", text, "]:", Port());
  }
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, text, sizeof(text));
  return absl::StrCat(text, ":", Port());
}

absl::StatusOr<SocketAddress> ResolveAddress(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0 || found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no address of \"", host, "\", for port ", port, ": ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  address.SetPort(port);
  return address;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<Socket> Socket::Listen(int family, int port) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return SystemError("socket");
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  SocketAddress any;  // zeros are the wildcard
  any.storage.ss_family = static_cast<sa_family_t>(family);
  any.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  any.SetPort(port);
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&any.storage), any.length) != 0 ||
      listen(socket.fd(), SOMAXCONN) != 0) {
    if (errno != EADDRINUSE) return SystemError(absl::StrCat("port ", port));
    return absl::AlreadyExistsError(absl::StrCat("port ", port, " is taken by another socket"));
  }
  return socket;
}

absl::StatusOr<Socket> Socket::Connect(const SocketAddress& address, Deadline deadline) {
  while (true) {
    Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) return SystemError("socket");
    int error = 0;
    if (connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
      error = errno;
      if (error == EINPROGRESS) {
        WaitFor(socket.fd(), POLLOUT, deadline);
        socklen_t length = sizeof(error);
        getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
        if (error == 0 && !socket.Peer().ok()) error = ETIMEDOUT;
      }
    }
    if (error == 0) {
      const int on = 1;
      setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return socket;
    }
    if (deadline.Passed()) {
      return absl::DeadlineExceededError(absl::StrCat("nobody listens at ", address.ToString(), " within ",
                                                      deadline.Seconds(), " s (", std::strerror(error), ")"));
    }
    // A process does not say when it begins to listen there.
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(deadline.Remaining(), std::chrono::milliseconds(20)));
  }
}

absl::StatusOr<SocketAddress> Socket::Local() const { return NameOf(fd_, getsockname); }

absl::StatusOr<SocketAddress> Socket::Peer() const { return NameOf(fd_, getpeername); }

int Socket::LocalPort() const {
  const absl::StatusOr<SocketAddress> local = Local();
  return local.ok() ? local->Port() : 0;
}

absl::StatusOr<Socket> Socket::Accept() const {
  Socket socket(accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) {
    const absl::Status status = SystemError("accept");
    // Anything else is of the one connection that it would have been.
    if (absl::IsResourceExhausted(status)) return status;
    return socket;
  }
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

absl::StatusOr<size_t> Socket::SendSome(std::string_view bytes) const {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (WouldBlock(errno)) return 0;
  return SystemError("send");
}

absl::StatusOr<size_t> Socket::ReceiveSome(char* buffer, size_t size) const {
  const ssize_t received = recv(fd_, buffer, size, 0);
  if (received > 0) return static_cast<size_t>(received);
  if (received < 0 && WouldBlock(errno)) return 0;
  if (received < 0) return SystemError("receive");
  return absl::UnavailableError("the other side closed the connection");
}

absl::Status Socket::SendAll(std::string_view bytes, Deadline deadline) const {
  while (true) {
    OTT_ASSIGN_OR_RETURN(const size_t sent, SendSome(bytes));
    bytes.remove_prefix(sent);
    if (bytes.empty()) return absl::OkStatus();
    if (deadline.Passed()) return absl::DeadlineExceededError("not sent");
    WaitFor(fd_, POLLOUT, deadline);
  }
}

absl::StatusOr<std::string> Socket::ReceiveExactly(size_t size, Deadline deadline) const {
  std::string bytes(size, '\0');
  for (size_t filled = 0; filled < size;) {
    OTT_ASSIGN_OR_RETURN(const size_t received, ReceiveSome(&bytes[filled], size - filled));
    filled += received;
    if (received > 0) continue;
    if (deadline.Passed()) return absl::DeadlineExceededError("nothing received");
    WaitFor(fd_, POLLIN, deadline);
  }
  return bytes;
}

void Wait(std::vector<pollfd>& sockets, Deadline deadline) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);
  const std::chrono::nanoseconds remaining = std::min(deadline.Remaining(), kLongest);
  timespec timeout;
  timeout.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(remaining).count();
  timeout.tv_nsec = (remaining % std::chrono::seconds(1)).count();
  ppoll(sockets.data(), sockets.size(), &timeout, nullptr);
}

}  // namespace ott
