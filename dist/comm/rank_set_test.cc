#include "ott/dist/comm/rank_set.h"

#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

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
    // Ranges that touch are one.
    std::map<int, int> ranges;
    for (const int rank : plain_a) {
      const bool goes_on = !ranges.empty() && ranges.rbegin()->second == rank;
      (goes_on ? ranges.rbegin()->second : ranges[rank]) = rank + 1;
    }
    EXPECT_EQ(a.ranges(), ranges);
  }
}

}  // namespace
}  // namespace ott
