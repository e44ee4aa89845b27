#include "ott/dist/check/verdict.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

CrossCheckVerdict Verdict(const std::string& text) {
  CrossCheckVerdict verdict;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &verdict));
  return verdict;
}

TEST(Passed, OnlyEqualityAndTolerancePass) {
  EXPECT_TRUE(Passed(Verdict("outcome: BITWISE_EQUAL")));
  EXPECT_TRUE(Passed(Verdict("outcome: WITHIN_TOLERANCE")));
  EXPECT_FALSE(Passed(Verdict("outcome: DIFFERENT")));
  EXPECT_FALSE(Passed(Verdict("outcome: NOT_COMPARED")));
  EXPECT_FALSE(Passed(CrossCheckVerdict()));
}

TEST(FindFirst, IsTheWorstAndOfThoseTheFirstTensorAndTheLowestRank) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<CrossCheckVerdict> verdicts(1 + random() % (trial % 10 == 0 ? 40 : 5));
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
      for (const int rank : verdict.first_ranks()) {
        EXPECT_EQ(std::count(first_ranks.begin(), first_ranks.end(), rank), 1);
      }
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
      for (int tensor = 0; state[i] > 0 && tensor < 2; ++tensor) {
        CountKind(kinds[i].first, state[i] == 2 && tensor == 1, *verdict.mutable_kinds());
      }
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

TEST(FormatVerdict, SaysWhereReplicasDiffer) {
  EXPECT_EQ(FormatVerdict(Verdict(R"(
                iteration: 30 mode: REPLICAS outcome: DIFFERENT num_tensors: 6 num_different_tensors: 2
                tensor: "weights.w1" dtype: "float32" shape: 64 shape: 32 has_majority: true
                culprit_ranks: 2 culprit_hosts: "node1"
                differences { ranks: 2 hosts: "node1" element: 517 index: 16 index: 5 value: "3.5e+37" expected: "0.25"
                              ulp_distance: 1065353216 flipped_bits: 30 })")),
            "iteration 30: replicas DIFFER in tensor \"weights.w1\" (float32 [64, 32]), the first of 2 of 6: "
            "rank 2 "
            "(node1)\n"
            "    element 517 = [16, 5]: 3.5e+37 on rank 2 (node1) instead of 0.25; 1065353216 ULP; flipped "
            "bit 30\n");
}

TEST(FormatVerdict, SaysThatARankWasNamedBefore) {
  EXPECT_EQ(
      FormatVerdict(Verdict(R"(
                iteration: 3 mode: SHARDS outcome: DIFFERENT has_majority: true culprit_ranks: [ 2, 4, 5 ]
                culprit_hosts: [ "n1", "n2", "n2" ] culprit_named_before: [ 4, 0, 1 ])")),
      "iteration 3: replicas of a shard DIFFER: rank 2 (n1), rank 4 (n2), rank 5 (n2); rank 2 was named in 4 "
      "earlier checks; rank 5 was named in 1 earlier check\n");
}

TEST(FormatVerdict, BlamesNobodyWithoutAMajority) {
  EXPECT_EQ(
      FormatVerdict(Verdict(R"(iteration: 1 mode: REPLICAS outcome: DIFFERENT tensor: "w" dtype: "int8")")),
      "iteration 1: replicas DIFFER in tensor \"w\" (int8 []): no majority, the ranks disagree; tensors that "
      "are meant to differ are left out by `replicated` or `kinds` of cross_check\n");
}

TEST(FormatVerdict, ExplainsNoMajorityByTheConfigurationOnlyIfAllRanksAreThere) {
  const std::string text = FormatVerdict(
      Verdict(R"(iteration: 1 mode: REPLICAS outcome: DIFFERENT tensor: "w" dtype: "int8" missing_ranks: 2
                 reason: "nothing from rank 2 within 30 s")"));
  EXPECT_EQ(text,
            "iteration 1: replicas DIFFER in tensor \"w\" (int8 []): no majority, the ranks disagree: "
            "nothing from rank 2 within 30 s\n");
}

TEST(FormatVerdict, SaysWhatOfATextDiffers) {
  EXPECT_EQ(FormatVerdict(Verdict(R"(iteration: 1 mode: REPLICAS outcome: DIFFERENT tensor: "schedule"
                                     dtype: "text" has_majority: true culprit_ranks: 1 culprit_hosts: "node"
                                     differences { ranks: 1 hosts: "node" element: 10 value: "\"to 1\""
                                                   expected: "\"to 0\"" })")),
            "iteration 1: replicas DIFFER in tensor \"schedule\" (text): rank 1 (node)\n"
            "    character 10: \"to 1\" on rank 1 (node) instead of \"to 0\"\n");
}

TEST(FormatVerdict, ShowsNoErrorsOfWhatHasNoElements) {
  EXPECT_EQ(FormatVerdict(Verdict(R"(iteration: 1 mode: REFERENCE outcome: DIFFERENT tensor: "w" host: "node"
                                     reference: "ref" reason: "w: shape differs: reference [2], current [3]")")),
            "iteration 1: rank 0 (node) against ref DIFFER in tensor \"w\": w: shape differs: reference [2], "
            "current [3]\n");
}

TEST(FormatVerdict, SaysThatOtherRanksDifferFirstInSomethingElse) {
  const std::string verdict =
      R"(iteration: 1 mode: REFERENCE outcome: DIFFERENT tensor: "w" dtype: "int8" host: "node"
      reference: "ref" first_tensor: "w" first_ranks: 0 num_first_ranks: 1 num_ranks: 4 num_different_ranks: )";
  EXPECT_THAT(FormatVerdict(Verdict(verdict + "1")), testing::HasSubstr("; on rank 0 alone\n"));
  CrossCheckVerdict alone = Verdict(verdict + "1");
  alone.set_num_ranks(1);
  EXPECT_THAT(FormatVerdict(alone), testing::EndsWith("rtol 0)\n"));
  EXPECT_THAT(FormatVerdict(Verdict(verdict + "3")),
              testing::HasSubstr("; first on rank 0 alone; 3 of 4 ranks differ\n"));
}

TEST(FormatVerdict, SaysEqualAndWithinToleranceApart) {
  EXPECT_EQ(FormatVerdict(Verdict("iteration: 5 mode: REPLICAS outcome: BITWISE_EQUAL num_tensors: 6")),
            "iteration 5: replicas equal bit for bit: 6 tensors\n");
  EXPECT_EQ(
      FormatVerdict(Verdict(R"(
                iteration: 5 mode: REFERENCE outcome: WITHIN_TOLERANCE num_tensors: 6 num_different_tensors: 4 rank: 1
                host: "node0" reference: "out/ref/rank_00001/dumps/5" max_abs_error: 1.5e-7 max_rel_error: 2e-6
                atol: 1e-5 rtol: 1e-4)")),
      "iteration 5: rank 1 (node0) against out/ref/rank_00001/dumps/5 within tolerance but not bit for bit: "
      "4 of "
      "6 tensors have other bits; max abs error 1.5e-07, max rel error 2e-06 (atol 1e-05, rtol 0.0001)\n");
}

TEST(FormatVerdict, SaysWhichToleranceOfAFileWasApplied) {
  const std::string errors = R"(tolerances: "t.textproto" mode: REFERENCE host: "node0" reference: "ref"
      tensor_errors { tensor: "a" max_abs_error: 0.25 passing_atol: 0.25 atol: 1 }
      tensor_errors { tensor: "b" max_abs_error: 0.125 passing_atol: 0.125 atol: 0.1875 })";
  EXPECT_THAT(
      FormatVerdict(Verdict(errors + "outcome: WITHIN_TOLERANCE num_different_tensors: 2")),
      testing::HasSubstr("nearest to its tolerance: \"b\", max abs error 0.125 (atol 0.188 of t.textproto)"));
  EXPECT_THAT(FormatVerdict(Verdict("tolerances: 't' mode: REFERENCE outcome: WITHIN_TOLERANCE")),
              testing::HasSubstr("0 of 0 tensors have other bits; \n"));
  EXPECT_THAT(FormatVerdict(Verdict(errors + "outcome: DIFFERENT tensor: 'a' dtype: 'float32'")),
              testing::HasSubstr("\"a\" (float32 []): max abs error 0.25 (atol 1 of t.textproto)"));
}

TEST(FormatVerdict, SaysThatAnotherRanksVerdictIsWorse) {
  EXPECT_EQ(
      FormatVerdict(Verdict(R"(iteration: 5 mode: REFERENCE outcome: BITWISE_EQUAL rank: 1 host: "node0"
                                     num_tensors: 6 reference: "ref" worst_outcome: DIFFERENT worst_rank: 2)")),
      "iteration 5: rank 1 (node0) against ref equal bit for bit: 6 tensors; rank 2's verdict is worse\n");
  // This does not say that rank 1 is the one that differs.
  EXPECT_EQ(
      FormatVerdict(Verdict(R"text(iteration: 5 mode: SHARDS outcome: BITWISE_EQUAL rank: 0 num_tensors: 6
                                     worst_outcome: DIFFERENT worst_rank: 1
                                     worst_finding: "DIFFER in tensor \"w\": rank 3 (node1)")text")),
      "iteration 5: replicas of a shard equal bit for bit: 6 tensors; replicas of rank 1's shard DIFFER in "
      "tensor \"w\": rank 3 (node1)\n");
}

TEST(FormatVerdict, CutsALongListOfCulprits) {
  CrossCheckVerdict verdict = Verdict("iteration: 5 mode: REPLICAS outcome: DIFFERENT has_majority: true");
  for (int rank = 0; rank < 3000; ++rank) {
    verdict.add_culprit_ranks(rank);
    verdict.add_culprit_hosts("node");
    verdict.add_culprit_named_before(1);
  }
  EXPECT_THAT(FormatVerdict(verdict),
              testing::HasSubstr("rank 7 (node), ... (3000 ranks in all); rank 0 was"));
  EXPECT_LT(FormatVerdict(verdict).size(), 600u);
}

TEST(FormatVerdict, SaysWhyNothingWasCompared) {
  EXPECT_EQ(FormatVerdict(
                Verdict(R"(iteration: 5 mode: REPLICAS outcome: NOT_COMPARED reason: "nothing\nat all")")),
            "iteration 5: replicas NOT COMPARED: nothing\\nat all\n");
}

TEST(VerdictToJsonLine, IsOneLineThatReadsBack) {
  const CrossCheckVerdict verdict = Verdict(R"(
      iteration: 30 mode: REPLICAS outcome: DIFFERENT tensor: "two\nlines \"quoted\" größe"
      differences { ulp_distance: 18446744073709551615 flipped_bits: 30 })");
  const std::string line = VerdictToJsonLine(verdict);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto back = ParseVerdict(line);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->SerializeAsString(), verdict.SerializeAsString());
}

TEST(ParseVerdict, RefusesACutLine) {
  const std::string line = VerdictToJsonLine(Verdict("iteration: 30"));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseVerdict(line.substr(0, line.size() / 2)).status()));
}

}  // namespace
}  // namespace ott
