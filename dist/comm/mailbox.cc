#include "ott/dist/comm/mailbox.h"

#include <limits>
#include <utility>

namespace ott {

void Mailbox::Put(int from, Channel channel, std::string bytes) {
  messages_[{channel.context, channel.number, from}].push_back(std::move(bytes));
}

std::optional<std::string> Mailbox::Take(int from, Channel channel) {
  const auto queue = messages_.find({channel.context, channel.number, from});
  if (queue == messages_.end()) return std::nullopt;
  std::string bytes = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) messages_.erase(queue);
  return bytes;
}

void Mailbox::DropBefore(Channel channel) {
  constexpr int kBeforeAllRanks = std::numeric_limits<int>::min();
  messages_.erase(messages_.lower_bound({channel.context, 0, kBeforeAllRanks}),
                  messages_.lower_bound({channel.context, channel.number, kBeforeAllRanks}));
}

}  // namespace ott
