#include "ott/core/digest/digest.h"

#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/digest_arithmetic.h"
#include "ott/core/digest/digest_lanes.h"

namespace ott {
namespace {

std::vector<uint32_t> RandomWords(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = random();
  return words;
}

Digest RootOf(const std::vector<uint32_t>& words) {
  return ComputeDigest(TensorView(words.data(), {static_cast<int64_t>(words.size())}))->root;
}

TEST(Digest, OfKnownDataStaysWhatItWas) {
  // Computed by a separate program from the construction in digest.h. Digests lie on disk, and other devices
  // compute them: a change of these is a change of format.
  std::vector<uint32_t> words(20000);
  std::iota(words.begin(), words.end(), 0);
  const TensorDigest digest = ComputeDigest(TensorView(words.data(), {100, 200})).value();
  ASSERT_EQ(digest.leaves.size(), 2u);
  EXPECT_EQ(digest.leaves[0].ToString(), "0ea6761a694aa99642a294d1444e5a90");
  EXPECT_EQ(digest.leaves[1].ToString(), "5b16b3f03e85441d5aa649bbaee3009a");
  EXPECT_EQ(digest.root.ToString(), "dc00e9382e70df3a8b66f56f3661ba87");
}

TEST(Digest, ATensorThatWasRefusedHasNone) {
  EXPECT_TRUE(absl::IsInvalidArgument(ComputeDigest(TensorView(nullptr, DType::kFloat32, {2})).status()));
}

TEST(Digest, FastLoopComputesWhatThePortableOneDoes) {
  const std::vector<uint32_t> words = RandomWords(64 * 37);
  for (int64_t num_stripes = 0; num_stripes <= 37; ++num_stripes) {
    internal::DigestLanes expected = {};
    const char* data = reinterpret_cast<const char*>(words.data());
    internal::AbsorbStripesPortable(expected, data, num_stripes);
    for (internal::AbsorbStripes* const absorb : internal::AbsorbStripesOfThisMachine()) {
      internal::DigestLanes actual = {};
      absorb(actual, data, num_stripes);
      ASSERT_EQ(std::memcmp(&expected, &actual, sizeof(expected)), 0) << num_stripes << " stripes";
    }
  }
}

// Makes the leaf lane by lane, like the threads of a device's warp.
TEST(Digest, LanesOneByOneMakeTheSameLeaf) {
  const std::vector<uint32_t> words = RandomWords(16 * 1024 + 1);
  const auto* const data = reinterpret_cast<const unsigned char*>(words.data());
  for (const int64_t size : {0, 1, 7, 8, 9, 255, 256, 257, 263, 264, 4096 + 100, 64 * 1024 - 1, 64 * 1024}) {
    for (const int offset : {0, 1}) {
      internal::DigestLane sums = {};
      for (int lane = 0; lane < internal::kDigestLanes; ++lane) {
        const internal::DigestLane part = offset == 0 ? internal::DigestOfLane<true>(data, size, lane)
                                                      : internal::DigestOfLane<false>(data + 1, size, lane);
        sums.a += part.a;
        sums.b += part.b;
      }
      const internal::DigestLane leaf = internal::DigestLeaf(sums, size);
      const char* const block = reinterpret_cast<const char*>(data) + offset;
      EXPECT_EQ((Digest{leaf.a, leaf.b}), DigestOfBlock({block, static_cast<size_t>(size)}))
          << size << " bytes at " << offset;
    }
  }
}

// A bit is flipped in one word, or in two, where XOR and sum see nothing.
TEST(Digest, EveryFlipOfABitInOneWordOrTwoIsSeen) {
  for (const bool zeros : {true, false}) {
    std::vector<uint32_t> words = zeros ? std::vector<uint32_t>(512, 0) : RandomWords(512);
    std::set<Digest> seen = {RootOf(words)};
    for (int bit = 0; bit < 32; ++bit) {
      for (const bool is_pair : {false, true}) {
        words[0] ^= is_pair ? 1u << bit : 0;
        for (size_t i = is_pair ? 1 : 0; i < words.size(); ++i) {
          words[i] ^= 1u << bit;
          EXPECT_TRUE(seen.insert(RootOf(words)).second) << "bit " << bit << " of word " << i << is_pair;
          words[i] ^= 1u << bit;
        }
        words[0] ^= is_pair ? 1u << bit : 0;
      }
    }
  }
}

TEST(Digest, EverySwapOfTwoElementsIsSeen) {
  std::vector<uint32_t> words = RandomWords(300);
  std::set<Digest> seen = {RootOf(words)};
  for (size_t i = 0; i < words.size(); ++i) {
    for (size_t j = i + 1; j < words.size(); ++j) {
      std::swap(words[i], words[j]);
      EXPECT_TRUE(seen.insert(RootOf(words)).second) << "elements " << i << " and " << j;
      std::swap(words[i], words[j]);
    }
  }
}

TEST(Digest, EveryOutputBitDependsOnEveryInputBit) {
  constexpr int kTrials = 200;
  int flips[128] = {};
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<uint32_t> words = RandomWords(256, trial);
    const Digest before = RootOf(words);
    words[trial] ^= 1u << trial % 32;
    const Digest after = RootOf(words);
    for (int bit = 0; bit < 64; ++bit) {
      flips[bit] += (before.low ^ after.low) >> bit & 1;
      flips[64 + bit] += (before.high ^ after.high) >> bit & 1;
    }
  }
  for (const int count : flips) {
    EXPECT_GT(count, kTrials / 4);
    EXPECT_LT(count, kTrials * 3 / 4);
  }
}

TEST(Digest, DTypeShapeAndLengthCount) {
  const std::vector<uint32_t> words(64, 0);
  std::set<Digest> seen;
  for (const DType dtype : {DType::kUInt32, DType::kInt32, DType::kFloat32}) {
    for (const Dims& shape :
         {Dims{24}, Dims{25}, Dims{4, 6}, Dims{6, 4}, Dims{24, 1}, Dims{0}, Dims{0, 0}, Dims{}}) {
      EXPECT_TRUE(seen.insert(ComputeDigest(TensorView(words.data(), dtype, shape))->root).second)
          << Name(dtype) << ShapeToString(shape);
    }
  }
}

TEST(Digest, StridesDoNotCount) {
  // More than one block, so that blocks are gathered from the middle too.
  const std::vector<uint32_t> words = RandomWords(200 * 300);
  std::vector<uint32_t> transposed(words.size());
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 300; ++j) transposed[j * 200 + i] = words[i * 300 + j];
  }
  const TensorDigest expected = ComputeDigest(TensorView(words.data(), {200, 300})).value();
  const TensorDigest actual =
      ComputeDigest(TensorView(transposed.data(), DType::kUInt32, {200, 300}, {1, 200})).value();
  EXPECT_EQ(actual.root, expected.root);
  EXPECT_EQ(actual.leaves, expected.leaves);
}

TEST(Digest, LeavesNameTheBlocksThatDiffer) {
  std::vector<uint32_t> words = RandomWords(100000);
  const std::vector<Digest> before = ComputeDigest(TensorView(words.data(), {100000}))->leaves;
  words[70000] ^= 1;
  const std::vector<Digest> after = ComputeDigest(TensorView(words.data(), {100000}))->leaves;
  ASSERT_EQ(before.size(), 7u);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(before[i] == after[i], i != 70000 * 4 / kDigestBlockBytes);
}

TEST(Digest, TheRootSeesTheOrderOfLeavesAndHowMany) {
  const Digest a{1, 2};
  const Digest b{3, 4};
  std::set<Digest> seen;
  const std::vector<Digest> all[] = {{},        {a},       {b},       {a, a},           {a, b},   {b, a},
                                     {a, a, b}, {a, b, a}, {b, a, a}, {{1, 4}, {3, 2}}, {{}, {}}, {{}}};
  for (const std::vector<Digest>& leaves : all) {
    EXPECT_TRUE(seen.insert(DigestOfLeaves(DType::kFloat32, {2}, leaves)).second)
        << leaves.size() << " leaves";
  }
}

TEST(Digest, TextReadsBack) {
  const Digest digest{0x0123456789abcdef, 0xfedcba9876543210};
  EXPECT_EQ(digest.ToString(), "fedcba98765432100123456789abcdef");
  EXPECT_EQ(ParseDigest(digest.ToString()).value(), digest);
  EXPECT_FALSE(ParseDigest("fedcba98765432100123456789abcde").ok());
  for (size_t i = 0; i < 32; ++i) EXPECT_FALSE(ParseDigest(digest.ToString().replace(i, 1, " ")).ok()) << i;
}

}  // namespace
}  // namespace ott
