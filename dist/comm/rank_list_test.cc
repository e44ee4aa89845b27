#include "ott/dist/comm/rank_list.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(FormatRank, NamesTheHostAndLeavesTheTerminalAlone) {
  EXPECT_EQ(FormatRank(3, "node1"), "rank 3 (node1)");
  EXPECT_EQ(FormatRank(3, "\x1b[31m\n"), "rank 3 (\\x1b[31m\\n)");
}

TEST(FormatRanks, JoinsNeighboursAndEndsAfterSixteen) {
  EXPECT_EQ(FormatRanks({}), "no rank");
  EXPECT_EQ(FormatRanks({3}), "rank 3");
  EXPECT_EQ(FormatRanks({4, 5}), "ranks 4, 5");
  EXPECT_EQ(FormatRanks({7, 0, 2, 1, 7, 9}), "ranks 0-2, 7, 9");
  // Memory behind the last one is not read.
  std::vector<int> shortened = {4, 5, 6};
  shortened.pop_back();
  EXPECT_EQ(FormatRanks(std::move(shortened)), "ranks 4, 5");
  // A list that nobody would read is cut.
  std::vector<int> odd;
  for (int rank = 1; rank < 10000; rank += 2) odd.push_back(rank);
  EXPECT_EQ(FormatRanks(odd),
            "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, ... (5000 in all)");
  odd.resize(16);
  EXPECT_EQ(FormatRanks(odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31");
}

TEST(FormatRanksAmong, SaysHowManyOfAll) {
  EXPECT_EQ(FormatRanksAmong({0, 1, 2}, 3, 3), "on all 3 ranks");
  EXPECT_EQ(FormatRanksAmong({1}, 1, 3), "on rank 1 alone");
  EXPECT_EQ(FormatRanksAmong({1, 2}, 2, 3), "on ranks 1, 2 of 3");
  EXPECT_EQ(FormatRanksAmong({1, 2}, 40, 50), "on 40 of 50 ranks, rank 1 the first");
}

}  // namespace
}  // namespace ott
