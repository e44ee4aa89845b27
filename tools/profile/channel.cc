#include "tools/profile/channel.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace ott::profile {
namespace {

// The leading zero byte puts the name outside the file system: unix(7), abstract addresses.
socklen_t AbstractAddress(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const size_t size = name.copy(address->sun_path + 1, sizeof(address->sun_path) - 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

// A message of an error and room for one descriptor.
struct Message {
  Message() {
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
  }

  int error = 0;
  iovec vector = {&error, sizeof(error)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
};

}  // namespace

int ListenForBuffers(std::string* address) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) return -1;
  char name[64];
  std::snprintf(name, sizeof(name), "ott_capture_%d_%016llx", getpid(),
                static_cast<unsigned long long>(random));
  *address = name;
  const int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un to;
  const socklen_t size = AbstractAddress(*address, &to);
  if (listening >= 0 &&
      (bind(listening, reinterpret_cast<sockaddr*>(&to), size) != 0 || listen(listening, SOMAXCONN) != 0)) {
    close(listening);
    return -1;
  }
  return listening;
}

int SendBuffer(const std::string& address, int buffer_fd, int error) {
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un to;
  const socklen_t size = AbstractAddress(address, &to);
  if (connection < 0) return -1;
  Message message;
  message.error = error;
  cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &buffer_fd, sizeof(int));
  if (buffer_fd < 0) message.header.msg_controllen = 0;
  if (connect(connection, reinterpret_cast<sockaddr*>(&to), size) != 0 ||
      sendmsg(connection, &message.header, MSG_NOSIGNAL) != sizeof(message.error)) {
    close(connection);
    return -1;
  }
  return connection;
}

bool ReceiveBuffer(int listening, ReceivedBuffer* received) {
  for (int connection; (connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;
       close(connection)) {
    ucred sender{};
    socklen_t size = sizeof(sender);
    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &sender, &size);
    if (sender.uid != getuid()) continue;
    // A sender that stops in between must not keep the others waiting.
    const timeval patience = {1, 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    Message message;
    if (recvmsg(connection, &message.header, MSG_CMSG_CLOEXEC) != sizeof(message.error)) continue;
    const cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
    const bool has_buffer =
        control != nullptr && control->cmsg_type == SCM_RIGHTS && control->cmsg_len == CMSG_LEN(sizeof(int));
    if (!has_buffer && message.error == 0) continue;
    *received = {connection, -1, message.error, sender.pid};
    if (has_buffer) std::memcpy(&received->buffer_fd, CMSG_DATA(control), sizeof(int));
    return true;
  }
  return false;
}

}  // namespace ott::profile
