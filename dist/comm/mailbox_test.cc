#include "ott/dist/comm/mailbox.h"

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Mailbox, KeepsTheOrderOfEachRankAndChannelAndDropsWhatIsStaleInOneContextOnly) {
  std::mt19937 random(1);
  Mailbox mailbox;
  std::map<std::tuple<uint64_t, uint64_t, int>, std::deque<std::string>> expected;
  for (int step = 0; step < 5000; ++step) {
    const Channel channel = {random() % 3, random() % 3};
    const int from = static_cast<int>(random() % 3);
    std::deque<std::string>& messages = expected[{channel.context, channel.number, from}];
    if (random() % 20 == 0) {
      mailbox.DropBefore(channel);
      for (auto& [key, stale] : expected) {
        if (std::get<0>(key) == channel.context && std::get<1>(key) < channel.number) stale.clear();
      }
    } else if (random() % 2 == 0) {
      mailbox.Put(from, channel, messages.emplace_back(std::to_string(step)));
    } else {
      EXPECT_EQ(mailbox.Take(from, channel), messages.empty() ? std::nullopt : std::optional(messages[0]));
      if (!messages.empty()) messages.pop_front();
    }
  }
}

}  // namespace
}  // namespace ott
