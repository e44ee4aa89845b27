#include "ott/dist/comm/rank_set.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(RankSet, JoinsRangesThatTouch) {
  RankSet ranks;
  ranks.Add(3);
  ranks.AddRange(5, 8);
  ranks.Add(4);
  EXPECT_THAT(ranks.ranges(), ElementsAre(Pair(3, 8)));
  EXPECT_EQ(ranks.size(), 5);
  ranks.AddRange(9, 9);
  EXPECT_EQ(ranks.size(), 5);
}

TEST(RankSet, AgreesWithASetOfRanksWhateverIsAddedAndTakenAway) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> draw(0, 40);
  for (int round = 0; round < 300; ++round) {
    RankSet a, b;
    std::set<int> plain_a, plain_b;
    for (int i = 0; i < 6; ++i) {
      const int begin = draw(random);
      const int end = begin + draw(random) / 4;
      (i % 2 == 0 ? a : b).AddRange(begin, end);
      for (int rank = begin; rank < end; ++rank) (i % 2 == 0 ? plain_a : plain_b).insert(rank);
    }
    std::set<int> difference = plain_a;
    for (const int rank : plain_b) difference.erase(rank);
    EXPECT_THAT(a.Minus(b).ToVector(), testing::ElementsAreArray(difference));
    for (int rank = -1; rank < 60; ++rank) EXPECT_EQ(a.Contains(rank), plain_a.count(rank) > 0);
    a.Add(b);
    plain_a.insert(plain_b.begin(), plain_b.end());
    EXPECT_THAT(a.ToVector(), testing::ElementsAreArray(plain_a));
    EXPECT_EQ(a.size(), static_cast<int64_t>(plain_a.size()));
  }
}

}  // namespace
}  // namespace ott
