#include "ott/dist/rank_list.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(FormatRanks, JoinsNeighbours) {
  EXPECT_EQ(FormatRanks({}), "no rank");
  EXPECT_EQ(FormatRanks({3}), "rank 3");
  EXPECT_EQ(FormatRanks({4, 5}), "ranks 4, 5");
  EXPECT_EQ(FormatRanks({7, 0, 2, 1, 7, 9}), "ranks 0-2, 7, 9");
}

}  // namespace
}  // namespace ott
