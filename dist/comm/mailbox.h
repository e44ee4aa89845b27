// Messages that have arrived and that nobody has asked for yet.

#ifndef OTT_DIST_COMM_MAILBOX_H_
#define OTT_DIST_COMM_MAILBOX_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "ott/dist/comm/transport.h"

namespace ott {

// Not thread-safe.
class Mailbox {
 public:
  void Put(int from, Channel channel, std::string bytes);
  // Returns the oldest message of `from` on this channel.
  std::optional<std::string> Take(int from, Channel channel);
  void DropBefore(Channel channel);

 private:
  // Ordered so that what is stale lies together.
  using Key = std::tuple<uint64_t /* context */, uint64_t /* number */, int /* from */>;
  std::map<Key, std::deque<std::string>> messages_;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_MAILBOX_H_
