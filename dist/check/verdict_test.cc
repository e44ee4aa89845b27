#include "ott/dist/check/verdict.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

CrossCheckVerdict Verdict(const std::string& text) {
  CrossCheckVerdict verdict;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &verdict));
  return verdict;
}

TEST(Passed, OnlyEqualityToleranceAndDistinctnessPass) {
  for (int outcome = 0; outcome < Outcome_ARRAYSIZE; ++outcome) {
    CrossCheckVerdict verdict;
    verdict.set_outcome(static_cast<Outcome>(outcome));
    EXPECT_EQ(Passed(verdict), outcome != OUTCOME_UNKNOWN && outcome != DIFFERENT && outcome != NOT_COMPARED);
  }
}

TEST(FindFirst, IsTheWorstAndOfThoseTheFirstTensorAndTheLowestRank) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<CrossCheckVerdict> verdicts(1 + random() % (trial % 10 == 0 ? 200 : 5));
    for (size_t i = 0; i < verdicts.size(); ++i) {
      const Outcome outcomes[] = {BITWISE_EQUAL, WITHIN_TOLERANCE, NOT_COMPARED,
                                  DIFFERENT,     DIFFERENT,        DIFFERENT};
      verdicts[i].set_outcome(outcomes[random() % 6]);
      verdicts[i].set_rank(static_cast<int>(i));
      verdicts[i].set_worst_finding("of rank " + std::to_string(i));
      if (const uint32_t position = random() % 3; position > 0) {
        verdicts[i].set_tensor_position(position);
        verdicts[i].set_tensor("t" + std::to_string(position));
      }
    }
    const auto is_worse = [](const CrossCheckVerdict& a, const CrossCheckVerdict& b) {
      if (SeverityOf(a.outcome()) != SeverityOf(b.outcome()))
        return SeverityOf(a.outcome()) > SeverityOf(b.outcome());
      if (a.has_tensor_position() != b.has_tensor_position()) return a.has_tensor_position();
      return a.tensor_position() < b.tensor_position();
    };
    const CrossCheckVerdict worst = *std::min_element(verdicts.begin(), verdicts.end(), is_worse);
    std::vector<int> first_ranks;
    int64_t num_different = 0;
    for (const CrossCheckVerdict& verdict : verdicts) {
      if (verdict.outcome() != DIFFERENT) continue;
      ++num_different;
      if (verdict.tensor() == worst.tensor() && !worst.tensor().empty())
        first_ranks.push_back(verdict.rank());
    }
    std::vector<CrossCheckVerdict> found = verdicts;
    std::shuffle(found.begin(), found.end(), random);
    FindFirst(found);
    for (const CrossCheckVerdict& verdict : found) {
      EXPECT_EQ(verdict.outcome(), verdicts[static_cast<size_t>(verdict.rank())].outcome());
      EXPECT_EQ(verdict.worst_outcome(), worst.outcome());
      EXPECT_EQ(verdict.worst_rank(), worst.rank());
      EXPECT_EQ(verdict.worst_finding(), worst.worst_finding());
      EXPECT_EQ(verdict.first_tensor(), first_ranks.empty() ? "" : worst.tensor());
      EXPECT_EQ(verdict.num_first_ranks(), first_ranks.size());
      EXPECT_EQ(verdict.first_ranks_size(), std::min<size_t>(first_ranks.size(), 16));
      for (const int rank : verdict.first_ranks())
        EXPECT_EQ(std::count(first_ranks.begin(), first_ranks.end(), rank), 1);
      EXPECT_EQ(verdict.num_different_ranks(), num_different);
      EXPECT_EQ(verdict.num_ranks(), verdicts.size());
    }
  }
}

TEST(FormatKinds, CountsEachAndSaysWhereOnlyTheUpdateCanBeIt) {
  // A digit a kind, of parameters, gradients, optimizer state and others: 0 none, 1 equal, 2 one of two
  // differs.
  for (int digits = 0; digits < 81; ++digits) {
    const std::vector<int> state = {digits / 27, digits / 9 % 3, digits / 3 % 3, digits % 3};
    const std::vector<std::pair<TensorKind, std::string>> kinds = {
        {TENSOR_KIND_PARAMETER, "parameters"},
        {TENSOR_KIND_GRADIENT, "gradients"},
        {TENSOR_KIND_OPTIMIZER_STATE, "optimizer state"},
        {TENSOR_KIND_OTHER, "others"}};
    CrossCheckVerdict verdict;
    std::string expected;
    for (size_t i = kinds.size(); i-- > 0;) {
      for (int tensor = 0; state[i] > 0 && tensor < 2; ++tensor)
        CountKind(kinds[i].first, state[i] == 2 && tensor == 1, *verdict.mutable_kinds());
      const std::string text = kinds[i].second + (state[i] == 2 ? " 1 of 2" : " 0 of 2");
      if (state[i] > 0) expected = text + (expected.empty() ? "" : ", ") + expected;
    }
    if (state[1] == 1 && (state[0] == 2 || state[2] == 2))
      expected += ": gradients are equal, so it is the update or what became of them before it";
    const bool has_several = std::count(state.begin(), state.end(), 0) < 3;
    const bool differs = std::count(state.begin(), state.end(), 2) > 0;
    EXPECT_EQ(FormatKinds(verdict.kinds()), has_several && differs ? expected : "");
  }
}

TEST(FormatVerdict, SaysWhatWasFoundWhereAndByWhom) {
  const std::string reference = "mode: REFERENCE iteration: 1 host: 'node' reference: 'ref' tensor: 'w' ";
  const std::string differs =
      reference + "dtype: 'int8' outcome: DIFFERENT first_tensor: 'w' first_ranks: 0 ";
  const std::string first = differs + "num_first_ranks: 1 ",
                    many = differs + "num_first_ranks: 20 num_ranks: 40 ";
  const std::string in_w =
      "rank 0 (node) against ref DIFFER in tensor \"w\" (int8 []): max abs error 0, max rel error 0 (atol 0, "
      "rtol 0)";
  const std::string errors = R"(mode: REFERENCE iteration: 1 host: "node" reference: "ref" tolerances: "t.txt"
      tensor_errors { tensor: "a" max_abs_error: 0.25 passing_atol: 0.25 atol: 1 }
      tensor_errors { tensor: "b" max_abs_error: 0.125 passing_atol: 0.125 atol: 0.1875 } )";
  const std::string worst = R"text( worst_outcome: DIFFERENT worst_rank: 1
      worst_finding: "DIFFER in tensor \"w\": rank 3 (node1)" )text";
  const std::pair<std::string, std::string> cases[] = {
      {R"(iteration: 1 mode: REPLICAS outcome: DIFFERENT num_tensors: 6 num_different_tensors: 2
          tensor: "weights.w1" dtype: "float32" shape: 64 shape: 32 has_majority: true
          culprit_ranks: 2 culprit_hosts: "node1"
          differences { ranks: 2 hosts: "node1" element: 517 index: 16 index: 5 value: "3.5e+37" expected: "0.25"
                        ulp_distance: 1065353216 flipped_bits: 30 })",
       "replicas DIFFER in tensor \"weights.w1\" (float32 [64, 32]), the first of 2 of 6: rank 2 (node1)\n"
       "    element 517 = [16, 5]: 3.5e+37 on rank 2 (node1) instead of 0.25; 1065353216 ULP; flipped bit "
       "30"},
      {R"(iteration: 1 mode: REPLICAS outcome: DIFFERENT tensor: "schedule" dtype: "text" has_majority: true
          culprit_ranks: 1 culprit_hosts: "node"
          differences { ranks: 1 hosts: "node" element: 10 value: "\"to 1\"" expected: "\"to 0\"" })",
       "replicas DIFFER in tensor \"schedule\" (text): rank 1 (node)\n"
       "    character 10: \"to 1\" on rank 1 (node) instead of \"to 0\""},
      {R"(iteration: 1 mode: SHARDS outcome: DIFFERENT has_majority: true culprit_ranks: [ 2, 4, 5 ]
          culprit_hosts: [ "n1", "n2", "n2" ] culprit_named_before: [ 4, 0, 1 ])",
       "replicas of a shard DIFFER: rank 2 (n1), rank 4 (n2), rank 5 (n2); rank 2 was named in 4 earlier "
       "checks; rank 5 was named in 1 earlier check"},
      {"iteration: 1 mode: SHARDS outcome: DIFFERENT has_majority: true culprit_ranks: 2 "
       "culprit_named_before: [ 0, 3 ] differences { ranks: 2 value: 'a' expected: 'b' }",
       "replicas of a shard DIFFER: rank 2 (host unknown)\n"
       "    element 0 = []: a on rank 2 (host unknown) instead of b"},
      // Without a majority nobody is blamed; the configuration may explain it if all ranks are there.
      {"iteration: 1 mode: REPLICAS outcome: DIFFERENT tensor: 'w' dtype: 'int8'",
       "replicas DIFFER in tensor \"w\" (int8 []): no majority, the ranks disagree; tensors that are meant "
       "to differ are left out by `replicated` or `kinds` of cross_check"},
      {"iteration: 1 mode: SHARDS outcome: DIFFERENT tensor: 'w' dtype: 'int8'",
       "replicas of a shard DIFFER in tensor \"w\" (int8 []): no majority, the ranks disagree"},
      {"iteration: 1 mode: REPLICAS outcome: DIFFERENT missing_ranks: 2 reason: 'nothing from rank 2'",
       "replicas DIFFER: no majority, the ranks disagree: nothing from rank 2"},
      {reference + "outcome: DIFFERENT reason: 'w: shape differs: reference [2], current [3]'",
       "rank 0 (node) against ref DIFFER in tensor \"w\": w: shape differs: reference [2], current [3]"},
      {first + "num_ranks: 4 num_different_ranks: 1", in_w + "; on rank 0 alone"},
      {first + "num_ranks: 1 num_different_ranks: 1", in_w},
      {first + "num_ranks: 4 num_different_ranks: 3", in_w + "; first on rank 0 alone; 3 of 4 ranks differ"},
      // Only the first of many ranks are listed.
      {many + "num_different_ranks: 20", in_w + "; on 20 of 40 ranks, rank 0 the first"},
      {many + "num_different_ranks: 21",
       in_w + "; first on 20 of 40 ranks, rank 0 the first; 21 of 40 ranks differ"},
      {"iteration: 1 mode: REPLICAS outcome: BITWISE_EQUAL num_tensors: 6",
       "replicas equal bit for bit: 6 tensors"},
      {R"(iteration: 1 mode: REFERENCE outcome: WITHIN_TOLERANCE num_tensors: 6 num_different_tensors: 4 rank: 1
          host: "node0" reference: "ref" max_abs_error: 1.5e-7 max_rel_error: 2e-6 atol: 1e-5 rtol: 1e-4)",
       "rank 1 (node0) against ref within tolerance but not bit for bit: 4 of 6 tensors have other bits; max "
       "abs error 1.5e-07, max rel error 2e-06 (atol 1e-05, rtol 0.0001)"},
      {errors + "outcome: WITHIN_TOLERANCE num_tensors: 3 num_different_tensors: 2",
       "rank 0 (node) against ref within tolerance but not bit for bit: 2 of 3 tensors have other bits; "
       "nearest to its tolerance: \"b\", max abs error 0.125 (atol 0.188 of t.txt)"},
      // Other bits of equal numbers need no tolerance.
      {R"(mode: REFERENCE iteration: 1 host: "node" reference: "ref" tolerances: "t" outcome: WITHIN_TOLERANCE
          tensor_errors { tensor: "zero" } tensor_errors { tensor: "b" passing_atol: 0.5 atol: 1 })",
       "rank 0 (node) against ref within tolerance but not bit for bit: 0 of 0 tensors have other bits; "
       "nearest to its tolerance: \"b\", max abs error 0 (atol 1 of t)"},
      {reference + "tolerances: 't' outcome: WITHIN_TOLERANCE",
       "rank 0 (node) against ref within tolerance but not bit for bit: 0 of 0 tensors have other bits; "},
      {errors + "outcome: DIFFERENT tensor: 'a' dtype: 'float32'",
       "rank 0 (node) against ref DIFFER in tensor \"a\" (float32 []): max abs error 0.25 (atol 1 of t.txt)"},
      {reference + "outcome: BITWISE_EQUAL num_tensors: 6 worst_outcome: DIFFERENT worst_rank: 2",
       "rank 0 (node) against ref equal bit for bit: 6 tensors; rank 2's verdict is worse"},
      // This does not say that rank 1 is the one that differs.
      {"iteration: 1 mode: SHARDS outcome: BITWISE_EQUAL num_tensors: 6" + worst,
       "replicas of a shard equal bit for bit: 6 tensors; replicas of rank 1's shard DIFFER in tensor \"w\": "
       "rank 3 (node1)"},
      {"iteration: 1 mode: SHARDS outcome: DIFFERENT has_majority: true" + worst,
       "replicas of a shard DIFFER: "},
      {"iteration: 1 mode: DISTINCT outcome: ALL_DISTINCT num_tensors: 1",
       "distinct tensors differ on all ranks: 1 tensor"},
      {"iteration: 1 mode: DISTINCT outcome: DIFFERENT culprit_ranks: [ 0, 1 ] culprit_hosts: [ 'a', 'b' ]",
       "distinct tensors are THE SAME: rank 0 (a), rank 1 (b)"},
      {"iteration: 1 mode: REPLICAS outcome: NOT_COMPARED reason: 'nothing\\nat all'",
       "replicas NOT COMPARED: nothing\\nat all"}};
  for (const auto& [verdict, text] : cases)
    EXPECT_EQ(FormatVerdict(Verdict(verdict)), "iteration 1: " + text + "\n") << verdict;
}

TEST(FormatVerdict, NamesEightCulpritsAndCountsThem) {
  CrossCheckVerdict verdict = Verdict("mode: SHARDS outcome: DIFFERENT has_majority: true");
  std::string names, before;
  for (int rank = 0; rank < 12; ++rank) {
    verdict.add_culprit_ranks(rank);
    verdict.add_culprit_hosts("n" + std::to_string(rank));
    verdict.add_culprit_named_before(1);
    const std::string name = "rank " + std::to_string(rank);
    if (rank < 8) names += (rank > 0 ? ", " : "") + name + " (n" + std::to_string(rank) + ")";
    if (rank < 8) before += "; " + name + " was named in 1 earlier check";
    const std::string more = rank < 8 ? "" : ", ... (" + std::to_string(rank + 1) + " ranks in all)";
    EXPECT_EQ(FormatFinding(verdict), "DIFFER: " + names + more + before);
  }
}

TEST(VerdictToJsonLine, IsOneLineThatReadsBackIfItIsWhole) {
  const CrossCheckVerdict verdict = Verdict(R"(
      iteration: 30 mode: REPLICAS outcome: DIFFERENT tensor: "two\nlines \"quoted\" größe"
      differences { ulp_distance: 18446744073709551615 flipped_bits: 30 })");
  const std::string line = VerdictToJsonLine(verdict);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto back = ParseVerdict(line).value();
  EXPECT_EQ(back.SerializeAsString(), verdict.SerializeAsString());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseVerdict(line.substr(0, line.size() / 2)).status()));
}

}  // namespace
}  // namespace ott
