// Hands the buffer of a captured process to `ott profile`: over a Unix socket without a name in the file
// system, whose address the processes inherit in the environment.

#ifndef OTT_TOOLS_PROFILE_CHANNEL_H_
#define OTT_TOOLS_PROFILE_CHANNEL_H_

#include <sys/types.h>

#include <string>

namespace ott::profile {

// Environment variables from `ott profile` to the library in the process.
inline constexpr char kSocketVariable[] = "OTT_CAPTURE_SOCKET";
inline constexpr char kBufferMibVariable[] = "OTT_CAPTURE_BUFFER_MIB";
inline constexpr char kRangeVariable[] = "OTT_CAPTURE_RANGE";

// Returns a socket that takes buffers, at an address of its own, which it stores in *address. -1 and errno on
// failure.
int ListenForBuffers(std::string* address);

// Sends the descriptor of a buffer; -1: the process could have none, because of `error`, an errno. Returns
// the connection, which lasts as long as the process keeps it open; -1 if nobody listens.
int SendBuffer(const std::string& address, int buffer_fd, int error = 0);

struct ReceivedBuffer {
  int connection = -1;
  int buffer_fd = -1;
  int error = 0;
  pid_t pid = 0;  // of the sender
};

// The next sender that waits, if there is one, of this user alone.
bool ReceiveBuffer(int listening, ReceivedBuffer* received);

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CHANNEL_H_
