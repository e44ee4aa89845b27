#include "ott/questions/origin/sequence_alignment.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ott::origin {
namespace {

TEST(SequenceAlignment, LongestCommonSubsequencesOfRandomSequencesAreFound) {
  std::mt19937 random(1);
  for (int run = 0; run < 300; ++run) {
    std::vector<uint32_t> a(random() % 30);
    std::vector<uint32_t> b(random() % 30);
    for (uint32_t& value : a) value = random() % 5;
    for (uint32_t& value : b) value = random() % 5;
    std::vector<std::vector<size_t>> longest(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
    for (size_t i = a.size(); i-- > 0;) {
      for (size_t j = b.size(); j-- > 0;) {
        longest[i][j] =
            a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
      }
    }
    const auto pairs = AlignSequences(a, b);
    EXPECT_EQ(pairs.size(), longest[0][0]);
    for (size_t p = 0; p < pairs.size(); ++p) {
      EXPECT_EQ(a[pairs[p].first], b[pairs[p].second]);
      if (p > 0) {
        EXPECT_LT(pairs[p - 1].first, pairs[p].first);
        EXPECT_LT(pairs[p - 1].second, pairs[p].second);
      }
    }
  }
}

TEST(SequenceAlignment, SequencesThatDifferInMuchAreAlignedByOccurrence) {
  std::vector<uint32_t> a;
  std::vector<uint32_t> b;
  for (uint32_t i = 0; i < 20000; ++i) {
    a.push_back(i % 3 == 0 ? 100000 + i : i);
    b.push_back(i % 3 == 0 ? 200000 + i : i);
  }
  EXPECT_EQ(AlignSequences(a, b).size(), 20000u - 6667u);
}

}  // namespace
}  // namespace ott::origin
