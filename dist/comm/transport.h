// The part that an implementation of Communicator over messages has to bring: everything else is in
// message_communicator.h.

#ifndef OTT_DIST_COMM_TRANSPORT_H_
#define OTT_DIST_COMM_TRANSPORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/comm/deadline.h"

namespace ott {

// Keeps the messages of different groups and calls apart.
struct Channel {
  // The group.
  uint64_t context = 0;
  // Counts the group's collectives, or is a tag.
  uint64_t number = 0;

  friend bool operator==(Channel a, Channel b) { return a.context == b.context && a.number == b.number; }
};

// Moves messages between ranks. Messages of one channel between two ranks arrive whole, once, in order.
// Thread safety: as Communicator.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns the host of this rank.
  virtual std::string host() const = 0;

  // Copies bytes and never waits for another rank.
  virtual absl::Status Post(int to, Channel channel, std::string_view bytes) = 0;
  // Waits until what was posted on this channel arrives without further calls; else DEADLINE_EXCEEDED.
  virtual absl::Status Flush(Channel channel, Deadline deadline) = 0;
  // Returns DEADLINE_EXCEEDED if nothing came.
  virtual absl::StatusOr<std::string> Receive(int from, Channel channel, Deadline deadline) = 0;
  // Throws away what has come on channels of channel.context numbered below channel.number.
  virtual void DropBefore(Channel channel) = 0;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_TRANSPORT_H_
