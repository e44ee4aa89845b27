#include "ott/core/statistics/rare_excess.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/statistics/policy.h"

namespace ott {
namespace {

TEST(RareExcess, AHiccupIsLongByTheClockAndBesideAnIteration) {
  const double long_iteration = 2 * kHiccupSeconds / kHiccupIterationShare;
  EXPECT_TRUE(IsHiccup(kHiccupSeconds, 1e-6));
  EXPECT_FALSE(IsHiccup(0.99 * kHiccupSeconds, 1e-6));
  EXPECT_TRUE(IsHiccup(2 * kHiccupSeconds, long_iteration));
  EXPECT_FALSE(IsHiccup(1.98 * kHiccupSeconds, long_iteration));
}

// A hundred iterations of a second. Each condition alone turns the answer.
TEST(RareExcess, IsRepeatedIfFewerLongestOnesMakeMostOfWhatIsLost) {
  const auto is_repeated = [](const std::vector<double>& hiccups, double all_late) {
    return IsRepeated(hiccups, all_late, 100, 1);
  };
  // Without the longest, 2 s of 100 s: just as much as is needed.
  EXPECT_TRUE(is_repeated({1, 1, 1}, 3));
  EXPECT_FALSE(is_repeated({1, 0.99, 1}, 3));
  EXPECT_FALSE(is_repeated({3, 3}, 6)) << "two may be by chance";
  EXPECT_TRUE(is_repeated({9, 1, 1}, 11)) << "the longest does not count";
  EXPECT_TRUE(is_repeated({9, 1, 1}, 13)) << "half of what else the processes are late by";
  EXPECT_FALSE(is_repeated({9, 1, 1}, 13.1));
  EXPECT_TRUE(is_repeated(std::vector<double>(50, 1), 50));
  EXPECT_FALSE(is_repeated(std::vector<double>(51, 1), 51)) << "more than half of the iterations is not rare";
  EXPECT_FALSE(IsRepeated({1, 1, 1}, 3, 101, 1));
  EXPECT_FALSE(IsRepeated({1, 1, 1}, 3, 100, 1.01));
}

// Tries how often whichever process has most of `all` hiccups has at least `count`, if they fall on processes
// by chance. Returns a bound, as it may be several.
double ChanceOf(int64_t count, int64_t all, int64_t num_processes) {
  std::mt19937_64 random(7);
  constexpr int kTrials = 200000;
  int64_t found = 0;
  std::vector<int64_t> counts(static_cast<size_t>(num_processes));
  for (int trial = 0; trial < kTrials; ++trial) {
    std::fill(counts.begin(), counts.end(), 0);
    for (int64_t i = 0; i < all; ++i) ++counts[random() % counts.size()];
    found += std::count_if(counts.begin(), counts.end(), [count](int64_t own) { return own >= count; });
  }
  return static_cast<double>(found) / kTrials;
}

TEST(RareExcess, OfLikeProcessesHardlyEverAnyHasSoMany) {
  for (const int64_t num_processes : {2, 3, 8}) {
    for (const int64_t num_others : {0, 1, 5, 12}) {
      int64_t fewest = 1;
      const std::vector<double> others(static_cast<size_t>(num_others), 1);
      while (!IsMoreThanChance(std::vector<double>(static_cast<size_t>(fewest), 1), others, num_processes))
        ++fewest;
      EXPECT_LE(ChanceOf(fewest, fewest + num_others, num_processes), 1.2 * kHiccupError)
          << fewest << " beside " << num_others << " of " << num_processes;
      EXPECT_GT(ChanceOf(fewest - 1, fewest - 1 + num_others, num_processes), 0.8 * kHiccupError)
          << fewest - 1 << " beside " << num_others << " of " << num_processes;
    }
  }
}

TEST(RareExcess, OthersShortOnesDoNotCountBesideIt) {
  const std::vector<double> own(11, 1);
  EXPECT_TRUE(IsMoreThanChance(own, {}, 2));
  EXPECT_FALSE(IsMoreThanChance(own, std::vector<double>(10, kHiccupOfOthersShare), 2));
  EXPECT_TRUE(IsMoreThanChance(own, std::vector<double>(10, 0.99 * kHiccupOfOthersShare), 2));
  // Its own short ones do not, either: of 18, ten count, beside ten of another.
  std::vector<double> mixed(8, 1e-3);
  mixed.insert(mixed.end(), 10, 1);
  EXPECT_FALSE(IsMoreThanChance(mixed, std::vector<double>(10, 1), 2));
}

TEST(RareExcess, IsRegularIfDistancesAreAlike) {
  EXPECT_TRUE(IsRegular({3, 53, 103, 153, 203}));
  EXPECT_FALSE(IsRegular({3, 53, 103, 153})) << "three distances";
  EXPECT_TRUE(IsRegular({0, 100, 200, 300, 410})) << "by a tenth";
  EXPECT_FALSE(IsRegular({0, 100, 200, 300, 411}));
  EXPECT_FALSE(IsRegular({0, 50, 100, 150, 190}));
  EXPECT_FALSE(IsRegular({}));
}

}  // namespace
}  // namespace ott
