#include "ott/dist/comm/mailbox.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Mailbox, KeepsTheOrderOfOneRankAndChannel) {
  Mailbox mailbox;
  mailbox.Put(1, {7, 3}, "first");
  mailbox.Put(1, {7, 3}, "second");
  EXPECT_EQ(mailbox.Take(1, {7, 3}), "first");
  EXPECT_EQ(mailbox.Take(1, {7, 3}), "second");
  EXPECT_EQ(mailbox.Take(1, {7, 3}), std::nullopt);
}

TEST(Mailbox, TellsRanksNumbersAndContextsApart) {
  Mailbox mailbox;
  mailbox.Put(1, {7, 3}, "message");
  EXPECT_EQ(mailbox.Take(2, {7, 3}), std::nullopt);
  EXPECT_EQ(mailbox.Take(1, {7, 4}), std::nullopt);
  EXPECT_EQ(mailbox.Take(1, {8, 3}), std::nullopt);
  EXPECT_EQ(mailbox.Take(1, {7, 3}), "message");
}

TEST(Mailbox, DropsWhatIsStaleInOneContextOnly) {
  Mailbox mailbox;
  mailbox.Put(0, {7, 2}, "stale");
  mailbox.Put(5, {7, 2}, "stale");
  mailbox.Put(0, {7, 3}, "current");
  mailbox.Put(0, {6, 1}, "of another group");
  mailbox.DropBefore({7, 3});
  EXPECT_EQ(mailbox.Take(0, {7, 2}), std::nullopt);
  EXPECT_EQ(mailbox.Take(5, {7, 2}), std::nullopt);
  EXPECT_EQ(mailbox.Take(0, {7, 3}), "current");
  EXPECT_EQ(mailbox.Take(0, {6, 1}), "of another group");
}

}  // namespace
}  // namespace ott
