// Aligns random sequences, and compares with what is longest by dynamic programming.

#include "ott/questions/origin/aligned_ops.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/questions/origin/origin_for_test.h"
#include "ott/questions/origin/sequence_alignment.h"

namespace ott::origin {
namespace {

// Returns the length of the longest common subsequence.
template <typename T>
size_t LongestInCommon(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<std::vector<size_t>> longest(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      longest[i][j] =
          a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  return longest[0][0];
}

TEST(SequenceAlignment, LongestCommonSubsequencesOfRandomSequencesAreFound) {
  std::mt19937 random(1);
  for (int run = 0; run < 300; ++run) {
    std::vector<uint32_t> a(random() % 30);
    std::vector<uint32_t> b(random() % 30);
    for (uint32_t& value : a) value = random() % 5;
    for (uint32_t& value : b) value = random() % 5;
    for (const bool from_end : {false, true}) {
      const auto pairs = AlignSequences(a, b, from_end);
      EXPECT_EQ(pairs.size(), LongestInCommon(a, b));
      for (size_t p = 0; p < pairs.size(); ++p) {
        EXPECT_EQ(a[pairs[p].first], b[pairs[p].second]);
        if (p > 0) {
          EXPECT_LT(pairs[p - 1].first, pairs[p].first);
          EXPECT_LT(pairs[p - 1].second, pairs[p].second);
        }
      }
    }
  }
}

TEST(SequenceAlignment, OfEqualElementsThoseAtTheAskedEndArePaired) {
  EXPECT_EQ(AlignSequences({7, 7}, {7}), (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}}));
  EXPECT_EQ(AlignSequences({7, 7}, {7}, /*from_end=*/true),
            (std::vector<std::pair<uint32_t, uint32_t>>{{1, 0}}));
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

// Returns all that an operation is known by, or without its name what one that it stands for has in common.
std::string KeyOf(const LoggedOp& op, bool with_name) {
  const OpDefinition& of = op.definition();
  std::string key = absl::StrCat(of.is_backward);
  absl::StrAppend(&key, with_name ? absl::StrCat(of.name, " ", of.module, " ", of.phase)
                                  : absl::StrCat(static_cast<int>(of.role)));
  for (const OpTensorDefinition& tensor : of.tensors) {
    if (with_name || tensor.is_output)
      absl::StrAppend(&key, tensor.is_output ? ">" : "<", tensor.num_elements, " ");
  }
  return key;
}

// Returns true if it has outputs, all of which it read.
bool IsCopy(const LoggedOp& op) {
  int num_outputs = 0;
  for (int o = 0; o < op.num_tensors(); ++o) {
    if (!op.definition().tensors[o].is_output) continue;
    ++num_outputs;
    bool was_read = false;
    for (int i = 0; i < op.num_tensors(); ++i)
      was_read = was_read || (!op.definition().tensors[i].is_output && op.digest(i) == op.digest(o));
    if (!was_read) return false;
  }
  return num_outputs > 0;
}

TEST(AlignOps, PairsAsManyAsPossibleAndThenThoseOfOneShape) {
  std::mt19937 random(1);
  const auto draw_op = [&] {
    const auto tensor = [&] {
      return WrittenTensor{std::vector<float>(1 + random() % 2, static_cast<float>(random() % 3))};
    };
    WrittenOp op = {random() % 2 == 0 ? "f" : "g"};
    if (random() % 8 == 0) op.module = "m";
    if (random() % 8 == 0) op.phase = "p";
    if (random() % 8 == 0) op.is_backward = true;
    if (random() % 8 == 0) op.role = OpRole::kUpdate;
    for (unsigned i = 0; i < random() % 3; ++i) op.inputs.push_back(tensor());
    for (unsigned i = 0; i < random() % 3; ++i) op.outputs.push_back(tensor());
    return op;
  };
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<std::vector<WrittenOp>> a(1 + random() % 3), b;
    for (std::vector<WrittenOp>& ops : a)
      for (unsigned i = 0; i < random() % 15; ++i) ops.push_back(draw_op());
    // Iterations mostly repeat the one before.
    if (a.size() > 2 && random() % 2 == 0) a[1] = a[0];
    b = a;
    if (b.size() > 1 && random() % 3 == 0) b.pop_back();
    for (std::vector<WrittenOp>& ops : b) {
      for (unsigned i = 0; i < random() % 4; ++i)
        ops.insert(ops.begin() + random() % (ops.size() + 1), draw_op());
      for (unsigned i = 0; i < random() % 4 && !ops.empty(); ++i)
        ops.erase(ops.begin() + random() % ops.size());
    }
    if (b.size() > 1 && random() % 4 == 0) b[1] = b[0];
    const LoggedOps log_a = LogOps(a), log_b = LogOps(b);
    const AlignedOps aligned = AlignOps(log_a, log_b);
    ASSERT_EQ(aligned.iterations.size(), b.size());
    std::vector<int32_t> of_a(log_a.ops.size(), -1), of_b(log_b.ops.size(), -1);
    size_t at = 0;
    size_t num_renamed = 0, num_a = 0, num_b = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      EXPECT_EQ(aligned.iterations[i].number, i);
      EXPECT_EQ(aligned.iterations[i].begin, at);
      const LoggedOps::Iteration& in_a = log_a.iterations[i];
      const LoggedOps::Iteration& in_b = log_b.iterations[i];
      num_a += in_a.end - in_a.begin;
      num_b += in_b.end - in_b.begin;
      const auto keys = [](const LoggedOps& log, size_t begin, size_t end, bool with_name) {
        std::vector<std::string> keys;
        for (size_t op = begin; op < end; ++op)
          if (with_name || !IsCopy(log.ops[op])) keys.push_back(KeyOf(log.ops[op], with_name));
        return keys;
      };
      size_t num_same = 0, num_of_gaps = 0, num_in_gaps = 0, next_a = in_a.begin, next_b = in_b.begin;
      const auto end_gap = [&](size_t end_a, size_t end_b) {
        num_of_gaps += LongestInCommon(keys(log_a, next_a, end_a, false), keys(log_b, next_b, end_b, false));
        next_a = end_a + 1;
        next_b = end_b + 1;
      };
      size_t last_a = 0, last_b = 0;
      for (; at < aligned.iterations[i].end; ++at) {
        const OpPair& pair = aligned.pairs[at];
        const LoggedOp &op_a = aligned.op_a(pair), &op_b = aligned.op_b(pair);
        EXPECT_EQ(KeyOf(op_a, pair.same), KeyOf(op_b, pair.same));
        EXPECT_TRUE(in_a.begin <= pair.a && pair.a < in_a.end && in_b.begin <= pair.b && pair.b < in_b.end);
        EXPECT_TRUE(last_a <= pair.a && last_b <= pair.b);
        last_a = pair.a + 1;
        last_b = pair.b + 1;
        of_a[pair.a] = static_cast<int32_t>(pair.b);
        of_b[pair.b] = static_cast<int32_t>(pair.a);
        ++(pair.same ? num_same : num_in_gaps);
        if (pair.same) {
          end_gap(pair.a, pair.b);
        } else {
          EXPECT_FALSE(IsCopy(op_a) || IsCopy(op_b));
        }
      }
      end_gap(in_a.end, in_b.end);
      EXPECT_EQ(num_same, LongestInCommon(keys(log_a, in_a.begin, in_a.end, true),
                                          keys(log_b, in_b.begin, in_b.end, true)));
      EXPECT_EQ(num_in_gaps, num_of_gaps);
      num_renamed += num_in_gaps;
    }
    EXPECT_EQ(at, aligned.pairs.size());
    EXPECT_EQ(aligned.partner_of_a, of_a);
    EXPECT_EQ(aligned.partner_of_b, of_b);
    EXPECT_EQ(aligned.num_renamed, num_renamed);
    EXPECT_EQ(aligned.num_only_in_a, num_a - at);
    EXPECT_EQ(aligned.num_only_in_b, num_b - at);
    for (size_t i = 0; i < log_a.iterations.size(); ++i) {
      for (size_t op = log_a.iterations[i].begin; op < log_a.iterations[i].end; ++op)
        EXPECT_EQ(IterationOf(log_a, op), i);
    }
  }
}

}  // namespace
}  // namespace ott::origin
