#include "ott/dist/check/replica_check.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dist/check/replica_tensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/digest/digest.h"
#include "ott/core/dump/stand_in.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

// The tensors that one rank trains: of several blocks, of one element, of none.
struct Model {
  std::vector<float> weights = std::vector<float>(100 * 400);
  std::vector<double> bias = {0.25};
  std::vector<int64_t> step = {7};

  Model() {
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5f * static_cast<float>(i);
  }

  std::vector<NamedTensor> Tensors() const {
    return {{"layer.weights", {TensorView(weights.data(), {100, 400}), nullptr}},
            {"layer.bias", {TensorView(bias.data(), {1}), nullptr}},
            {"empty", {TensorView(bias.data(), {0, 3}), nullptr}},
            {"step", {TensorView(step.data(), {}), nullptr}}};
  }
};

template <typename T>
void FlipBit(T& value, int bit) {
  reinterpret_cast<unsigned char*>(&value)[bit / 8] ^= static_cast<unsigned char>(1 << (bit % 8));
}

// Runs one check on `size` ranks; prepare may change a rank's tensors. Verdicts by rank.
std::vector<CrossCheckVerdict> Check(
    int size, const std::function<void(int, Model&)>& change,
    const std::function<void(int, std::vector<NamedTensor>&)>& change_tensors = {},
    const ReplicaCheckOptions& options = {}) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank) hosts.push_back("node" + std::to_string(rank));
  auto ranks = CreateSimulatedCommunicators(hosts);
  std::vector<CrossCheckVerdict> verdicts(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Model model;
      if (change) change(rank, model);
      std::vector<NamedTensor> tensors = model.Tensors();
      if (change_tensors) change_tensors(rank, tensors);
      ReplicaCheck check(std::move(ranks[rank]), seconds(60), options);
      verdicts[rank] = check.Run(30, tensors);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return verdicts;
}

TEST(ReplicaCheck, EqualReplicasPassOnEveryRank) {
  for (const int size : {2, 5}) {
    const auto verdicts = Check(size, {});
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(verdicts[rank].outcome(), BITWISE_EQUAL) << verdicts[rank].DebugString();
      EXPECT_EQ(verdicts[rank].rank(), rank);
      EXPECT_EQ(verdicts[rank].iteration(), 30);
      EXPECT_EQ(verdicts[rank].num_tensors(), 4);
    }
  }
}

TEST(ReplicaCheck, OneRankAloneIsNoPass) {
  const CrossCheckVerdict verdict = Check(1, {})[0];
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("one rank has no replicas"));
}

TEST(ReplicaCheck, AMajorityIsOneOfAllRanksNotOfThoseThatAnswered) {
  for (const int num_there : {3, 4}) {
    auto ranks = CreateSimulatedCommunicators({"a", "b", "c", "d", "e"});
    std::vector<std::thread> threads;
    for (int rank = 1; rank < num_there; ++rank) {
      threads.emplace_back([&, rank] {
        Model model;
        if (rank == 2) model.bias[0] = 1;
        ReplicaCheck(std::move(ranks[rank]), seconds(60)).Run(3, model.Tensors());
      });
    }
    const Model model;
    const CrossCheckVerdict verdict =
        ReplicaCheck(std::move(ranks[0]), milliseconds(500)).Run(3, model.Tensors());
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(verdict.outcome(), DIFFERENT);
    EXPECT_EQ(verdict.tensor(), "layer.bias");
    EXPECT_EQ(verdict.has_majority(), num_there == 4);
    EXPECT_THAT(verdict.reason(), HasSubstr(num_there == 4 ? "nothing from rank 4 (e) within"
                                                           : "nothing from ranks 3, 4 within"));
    EXPECT_EQ(verdict.culprit_ranks_size(), num_there == 4 ? 1 : 0) << verdict.DebugString();
  }
}

TEST(ReplicaCheck, OfAnyVotesThoseOutsideTheMajorityAreNamed) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<int> votes(2 + random() % 6);
    for (int& vote : votes) vote = random() % 3 == 0 ? static_cast<int>(random() % 3) : 0;
    const CrossCheckVerdict verdict = Check(static_cast<int>(votes.size()), [&](int rank, Model& model) {
      model.weights[31000] = static_cast<float>(votes[rank]);
    })[0];
    std::vector<int> culprits;
    bool has_majority = false;
    for (const int vote : {0, 1, 2}) {
      if (2 * std::count(votes.begin(), votes.end(), vote) <= static_cast<int64_t>(votes.size())) continue;
      has_majority = true;
      for (size_t rank = 0; rank < votes.size(); ++rank) {
        if (votes[rank] != vote) culprits.push_back(static_cast<int>(rank));
      }
    }
    const bool all_equal =
        std::count(votes.begin(), votes.end(), votes[0]) == static_cast<int64_t>(votes.size());
    EXPECT_EQ(verdict.outcome(), all_equal ? BITWISE_EQUAL : DIFFERENT);
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAreArray(culprits)) << verdict.DebugString();
    if (!all_equal) {
      EXPECT_EQ(verdict.has_majority(), has_majority);
      EXPECT_EQ(verdict.tensor(), "layer.weights");
    }
  }
}

// The verdict where each rank's bias is one of the values.
CrossCheckVerdict CheckBiases(const std::vector<double>& biases, double atol, double rtol = 0) {
  ReplicaCheckOptions options;
  options.tolerance.emplace();
  options.tolerance->atol = atol;
  options.tolerance->rtol = rtol;
  options.kind_of = [](const std::string&) { return TensorKind(); };
  return Check(
      static_cast<int>(biases.size()), [&](int rank, Model& model) { model.bias[0] = biases[rank]; }, {},
      options)[0];
}

TEST(ReplicaCheck, WithAToleranceTheOrderOfTheRanksDoesNotMatter) {
  std::vector<double> biases = {0, .000901, .000902, .0018};
  do {
    const CrossCheckVerdict verdict = CheckBiases(biases, .001);
    // The outer two agree with most, but not with each other.
    EXPECT_EQ(verdict.outcome(), DIFFERENT);
    EXPECT_FALSE(verdict.has_majority());
    EXPECT_THAT(verdict.culprit_ranks(), IsEmpty());
    EXPECT_NEAR(verdict.max_abs_error(), .0018, 1e-9);
    ASSERT_EQ(verdict.differences_size(), 1) << verdict.DebugString();
  } while (std::next_permutation(biases.begin(), biases.end()));
}

// 0.1 is within 0.095 of 1.1, and not of 1; whose digest comes first does not matter.
TEST(ReplicaCheck, WithARelativeToleranceEachMustBeWithinItOfTheOther) {
  for (int scale = 1; scale <= 12; ++scale) {
    EXPECT_EQ(CheckBiases({1. * scale, 1.1 * scale}, 0, 0.095).outcome(), DIFFERENT) << scale;
    EXPECT_EQ(CheckBiases({1.1 * scale, 1. * scale}, 0, 0.105).outcome(), WITHIN_TOLERANCE) << scale;
  }
}

TEST(ReplicaCheck, WithAToleranceAMissingRankIsNoPass) {
  auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
  ReplicaCheckOptions options;
  options.tolerance.emplace();
  options.tolerance->atol = 1;
  std::thread other([&] {
    Model model;
    model.bias[0] += 0.5;
    ReplicaCheck(std::move(ranks[1]), seconds(60), options).Run(3, model.Tensors());
  });
  const Model model;
  const CrossCheckVerdict verdict =
      ReplicaCheck(std::move(ranks[0]), milliseconds(500), options).Run(3, model.Tensors());
  other.join();
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED) << verdict.DebugString();
  EXPECT_THAT(verdict.missing_ranks(), ElementsAre(2));
}

TEST(ReplicaCheck, WithAToleranceThoseThatNobodyOfAMajorityAgreesWithAreNamed) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<double> biases(2 + random() % 5);
    for (double& bias : biases) bias = (random() % 4 == 0 ? 2 : 0) + 0.4 * static_cast<double>(random() % 4);
    const auto agree = [](double a, double b) { return std::abs(a - b) <= 0.5; };
    const auto num_like = [&](double bias) {
      return std::count_if(biases.begin(), biases.end(), [&](double other) { return agree(bias, other); });
    };
    const auto is_majority = [&](int64_t count) { return 2 * count > static_cast<int64_t>(biases.size()); };
    bool all_agree = true;
    bool any_majority = false;
    std::vector<int> culprits;
    for (size_t rank = 0; rank < biases.size(); ++rank) {
      all_agree = all_agree && is_majority(num_like(biases[rank])) &&
                  num_like(biases[rank]) == static_cast<int64_t>(biases.size());
      any_majority = any_majority || is_majority(num_like(biases[rank]));
      if (std::none_of(biases.begin(), biases.end(), [&](double other) {
            return is_majority(num_like(other)) && agree(other, biases[rank]);
          })) {
        culprits.push_back(static_cast<int>(rank));
      }
    }
    if (!any_majority) culprits.clear();
    const bool all_equal =
        *std::min_element(biases.begin(), biases.end()) == *std::max_element(biases.begin(), biases.end());
    const CrossCheckVerdict verdict = CheckBiases(biases, 0.5);
    EXPECT_EQ(verdict.outcome(), all_equal ? BITWISE_EQUAL : all_agree ? WITHIN_TOLERANCE : DIFFERENT);
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAreArray(culprits)) << verdict.DebugString();
    EXPECT_EQ(verdict.has_majority(), !culprits.empty()) << verdict.DebugString();
    std::set<int> shown;
    for (const FirstDifference& difference : verdict.differences()) {
      shown.insert(difference.ranks().begin(), difference.ranks().end());
    }
    EXPECT_EQ(shown.empty(), all_agree);
    if (!culprits.empty()) {
      EXPECT_TRUE(std::includes(shown.begin(), shown.end(), culprits.begin(), culprits.end()));
    }
    // Bits that differ are counted, which says nothing where they may.
    EXPECT_EQ(verdict.kinds_size(), 0);
  }
}

TEST(ReplicaCheck, WithAToleranceWhatIsNaNEverywhereIsNoDifference) {
  for (const float change : {1e-6f, 1.0f}) {
    ReplicaCheckOptions options;
    options.tolerance.emplace();
    options.tolerance->atol = 1e-3;
    const CrossCheckVerdict verdict = Check(
        3,
        [&](int rank, Model& model) {
          model.weights[0] = std::numeric_limits<float>::quiet_NaN();
          if (rank == 2) model.weights[1] += change;
        },
        {}, options)[0];
    EXPECT_EQ(verdict.outcome(), change < 1 ? WITHIN_TOLERANCE : DIFFERENT) << verdict.DebugString();
    if (change < 1) continue;
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(2));
    EXPECT_EQ(verdict.differences(0).element(), 1);
  }
}

// The verdict where each rank brings what is in its tree.
CrossCheckVerdict CheckTrees(const std::vector<Value>& trees,
                             std::optional<Tolerance> tolerance = std::nullopt) {
  ReplicaCheckOptions options;
  options.tolerance = tolerance;
  return Check(
      static_cast<int>(trees.size()), {},
      [&](int rank, std::vector<NamedTensor>& tensors) { tensors = ListComparable(trees[rank]); },
      options)[0];
}

TEST(ReplicaCheck, NumbersBoolsAndTextsAreReplicas) {
  const auto tree = [](Value rate, Value nesterov, Value schedule) {
    return Value(ValueMap{
        {"rate", std::move(rate)}, {"nesterov", std::move(nesterov)}, {"schedule", std::move(schedule)}});
  };
  const Value good = tree(0.1, true, "cosine to 0");
  EXPECT_EQ(CheckTrees({good, good}).outcome(), BITWISE_EQUAL);
  Tolerance tolerance;
  tolerance.atol = 0.5;
  const struct {
    Value bad;
    std::string tensor, dtype, value, expected;
    bool within;
  } cases[] = {
      {tree(0.2, true, "cosine to 0"), "rate", "float64", "0.2", "0.1", true},
      {tree(0.1, false, "cosine to 0"), "nesterov", "bool", "0", "1", false},
      {tree(0.1, true, "cosine to 1e-5"), "schedule", "text", "\"cosine to 1e-5\"", "\"cosine to 0\"", false},
      {tree(0.1, true, ""), "schedule", "text", "\"\"", "\"cosine to 0\"", false},
      {tree(0.1, true, std::string(70000, 'x')), "schedule", "text", "\"" + std::string(60, 'x') + "...\"",
       "\"cosine to 0\"", false},
  };
  for (const auto& test : cases) {
    const CrossCheckVerdict verdict = CheckTrees({good, test.bad, good});
    EXPECT_EQ(verdict.outcome(), DIFFERENT) << test.tensor;
    EXPECT_EQ(verdict.tensor(), test.tensor);
    EXPECT_EQ(verdict.dtype(), test.dtype);
    EXPECT_EQ(verdict.shape_size(), 0);
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(1));
    ASSERT_EQ(verdict.differences_size(), 1) << verdict.DebugString();
    EXPECT_EQ(verdict.differences(0).value(), test.value);
    EXPECT_EQ(verdict.differences(0).expected(), test.expected);
    EXPECT_EQ(CheckTrees({good, test.bad, good}, tolerance).outcome(),
              test.within ? WITHIN_TOLERANCE : DIFFERENT);
  }
  const CrossCheckVerdict kinds = CheckTrees({good, tree("0.1", true, "cosine to 0"), good});
  EXPECT_EQ(kinds.outcome(), DIFFERENT);
  EXPECT_THAT(kinds.reason(), HasSubstr("tensor 0 is \"rate\" text on rank 1 (node1), \"rate\" float64 []"));
}

TEST(ReplicaCheck, TensorsOfWhichOnlyDigestsAreKnownAreComparedByThem) {
  const std::vector<float> right = {1, 2, 3};
  const std::vector<float> wrong = {1, 2, 4};
  const auto whole = [](const std::vector<float>& data) {
    return Value(ValueMap{{"w", TensorView(data.data(), {3})}});
  };
  const auto digest = [](const std::vector<float>& data) {
    const std::string text = ComputeDigest(TensorView(data.data(), {3})).value().root.ToString();
    return Value(
        ValueMap{{"w", ValueMap{{"tensor_statistics",
                                 ValueMap{{"dtype", "float32"}, {"shape", "[3]"}, {"digest", text}}}}}});
  };
  EXPECT_EQ(CheckTrees({digest(right), digest(right)}).outcome(), BITWISE_EQUAL);
  EXPECT_EQ(CheckTrees({digest(right), whole(right)}).outcome(), BITWISE_EQUAL);
  for (const Value& bad : {digest(wrong), whole(wrong)}) {
    const CrossCheckVerdict verdict = CheckTrees({digest(right), bad, whole(right)});
    EXPECT_EQ(verdict.outcome(), DIFFERENT);
    EXPECT_EQ(verdict.tensor(), "w");
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(1));
    EXPECT_THAT(verdict.reason(), HasSubstr("not located: "));
    Tolerance tolerance;
    tolerance.atol = 10;
    EXPECT_EQ(CheckTrees({digest(right), bad, whole(right)}, tolerance).outcome(), NOT_COMPARED);
  }
}

TEST(ReplicaCheck, MoreContentsThanAreComparedWithEachOtherStillHaveTheirCulprit) {
  std::vector<double> biases(40);
  for (size_t rank = 0; rank < biases.size(); ++rank) biases[rank] = 1e-6 * static_cast<double>(rank);
  EXPECT_EQ(CheckBiases(biases, .001).outcome(), WITHIN_TOLERANCE);
  biases[7] = 1;
  const CrossCheckVerdict verdict = CheckBiases(biases, .001);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(7));
}

TEST(ReplicaCheck, FindsTheFirstOfTooManyTensorsForRankZeroToHoldTheDigestsOf) {
  constexpr int kNumTensors = 1000;
  const double zero = 0;
  const double one = 1;
  for (const auto& [first, tensors_at_once] :
       {std::pair(0, 8), {1, 8}, {499, 8}, {998, 8}, {999, 8}, {0, 1}, {998, 1}, {999, 1}}) {
    ReplicaCheckOptions options;
    options.max_digest_bytes = 16 * 3 * tensors_at_once;  // of three contents
    const auto verdicts = Check(
        3, {},
        [&, first = first](int rank, std::vector<NamedTensor>& tensors) {
          tensors.clear();
          for (int i = 0; i < kNumTensors; ++i) {
            const bool differs = rank == 1 ? i == first || i == 999 : rank == 2 && i == 999;
            tensors.push_back({"t" + std::to_string(i), {TensorView(differs ? &one : &zero, {1}), nullptr}});
          }
        },
        options);
    EXPECT_EQ(verdicts[2].tensor(), "t" + std::to_string(first));
    EXPECT_THAT(verdicts[2].culprit_ranks(), first == 999 ? ElementsAre(0) : ElementsAre(1));
    EXPECT_EQ(verdicts[2].reason().empty(), first == 999 || (first == 998 && tensors_at_once > 1))
        << verdicts[2].reason();
  }
}

TEST(ReplicaCheck, FindsTheFlippedBitOfOneRank) {
  const int64_t element = 77 * 400 + 123;  // not in the first block
  const auto verdicts = Check(4, [&](int rank, Model& model) {
    if (rank != 2) return;
    FlipBit(model.weights[element], 30);
    FlipBit(model.step[0], 0);
  });
  for (const CrossCheckVerdict& verdict : verdicts) {
    EXPECT_EQ(verdict.outcome(), DIFFERENT);
    EXPECT_EQ(verdict.tensor(), "layer.weights");
    EXPECT_EQ(verdict.dtype(), "float32");
    EXPECT_THAT(verdict.shape(), ElementsAre(100, 400));
    EXPECT_EQ(verdict.num_different_tensors(), 2);
    EXPECT_TRUE(verdict.has_majority());
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(2));
    EXPECT_THAT(verdict.culprit_hosts(), ElementsAre("node2"));
    ASSERT_EQ(verdict.differences_size(), 1);
    const FirstDifference& difference = verdict.differences(0);
    EXPECT_EQ(difference.element(), element);
    EXPECT_THAT(difference.index(), ElementsAre(77, 123));
    EXPECT_EQ(difference.expected(), "15461.5");
    EXPECT_THAT(difference.flipped_bits(), ElementsAre(30));
    EXPECT_EQ(difference.ulp_distance(), 1u << 30);
    EXPECT_THAT(difference.ranks(), ElementsAre(2));
  }
}

TEST(ReplicaCheck, SaysHowOftenARankWasNamedBefore) {
  auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
  std::vector<CrossCheckVerdict> last(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      ReplicaCheck check(std::move(ranks[rank]), seconds(60));
      for (const int culprit : {1, 2, 1, 1}) {
        Model model;
        if (rank == culprit) model.bias[0] = 1;
        last[rank] = check.Run(0, model.Tensors());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(last[2].culprit_ranks(), ElementsAre(1));
  EXPECT_THAT(last[2].culprit_named_before(), ElementsAre(2));
}

TEST(ReplicaCheck, BlamesRankZeroWhereItIsTheMinority) {
  const auto verdicts = Check(3, [](int rank, Model& model) {
    if (rank == 0) model.bias[0] = std::numeric_limits<double>::quiet_NaN();
  });
  EXPECT_EQ(verdicts[1].tensor(), "layer.bias");
  EXPECT_THAT(verdicts[1].culprit_ranks(), ElementsAre(0));
  EXPECT_EQ(verdicts[1].differences(0).value(), "nan");
  EXPECT_EQ(verdicts[1].differences(0).expected(), "0.25");
  EXPECT_FALSE(verdicts[1].differences(0).has_ulp_distance());
}

TEST(ReplicaCheck, TellsApartSeveralCulprits) {
  const auto verdicts = Check(7, [](int rank, Model& model) {
    if (rank == 1 || rank == 4) FlipBit(model.weights[5], 3);
    if (rank == 6) FlipBit(model.weights[2], 31);
  });
  EXPECT_THAT(verdicts[3].culprit_ranks(), ElementsAre(1, 4, 6));
  ASSERT_EQ(verdicts[3].differences_size(), 2);
  const bool first_is_pair = verdicts[3].differences(0).ranks_size() == 2;
  EXPECT_THAT(verdicts[3].differences(first_is_pair ? 0 : 1).ranks(), ElementsAre(1, 4));
  EXPECT_EQ(verdicts[3].differences(first_is_pair ? 0 : 1).element(), 5);
  EXPECT_EQ(verdicts[3].differences(first_is_pair ? 1 : 0).element(), 2);
}

TEST(ReplicaCheck, FindsAPermutationAndAPairOfFlipsThatCancelInASum) {
  for (const auto& change : std::vector<std::function<void(Model&)>>{
           [](Model& model) { std::swap(model.weights[10], model.weights[20]); },
           [](Model& model) {
             FlipBit(model.weights[10], 5);
             FlipBit(model.weights[14], 5);
           }}) {
    const auto verdicts = Check(3, [&](int rank, Model& model) {
      if (rank == 1) change(model);
    });
    EXPECT_THAT(verdicts[0].culprit_ranks(), ElementsAre(1));
    EXPECT_EQ(verdicts[0].differences(0).element(), 10);
  }
}

TEST(ReplicaCheck, NamesTheRankAndTheFirstNameOfAnotherSetOfTensors) {
  const auto verdicts = Check(3, {}, [](int rank, std::vector<NamedTensor>& tensors) {
    if (rank == 1) tensors[1].path = "layer.gain";
  });
  EXPECT_EQ(verdicts[2].outcome(), DIFFERENT);
  EXPECT_EQ(verdicts[2].tensor(), "layer.gain");
  EXPECT_THAT(verdicts[2].culprit_ranks(), ElementsAre(1));
  EXPECT_EQ(verdicts[2].reason(),
            "tensor 1 is \"layer.gain\" float64 [1] on rank 1 (node1), "
            "\"layer.bias\" float64 [1] on ranks 0, 2");
}

TEST(ReplicaCheck, NamesAnotherShapeDTypeOrNumberOfTensors) {
  const float value = 0;
  const auto reason_of = [&](const std::function<void(std::vector<NamedTensor>&)>& change) {
    return Check(3, {},
                 [&](int rank, std::vector<NamedTensor>& tensors) {
                   if (rank == 2) change(tensors);
                 })[0]
        .reason();
  };
  EXPECT_THAT(
      reason_of([](auto& tensors) {
        tensors[0].tensor.view = TensorView(tensors[0].tensor.view.data(), DType::kFloat32, {400, 100});
      }),
      HasSubstr("float32 [400, 100] on rank 2 (node2), \"layer.weights\" float32 [100, 400] on ranks 0, 1"));
  EXPECT_THAT(reason_of([&](auto& tensors) { tensors[1].tensor.view = TensorView(&value, {1}); }),
              HasSubstr("\"layer.bias\" float32 [1] on rank 2"));
  EXPECT_THAT(reason_of([](auto& tensors) { tensors.pop_back(); }),
              HasSubstr("tensor 3 is missing on rank 2 (node2), \"step\" int64 [] on ranks 0, 1"));
}

TEST(ReplicaCheck, NothingToCompareIsNoPass) {
  const auto verdicts = Check(2, {}, [](int, std::vector<NamedTensor>& tensors) { tensors.clear(); });
  EXPECT_EQ(verdicts[1].outcome(), NOT_COMPARED);
  EXPECT_THAT(verdicts[1].reason(), HasSubstr("no tensor"));
}

TEST(ReplicaCheck, RanksInDifferentIterationsAreNotCompared) {
  auto ranks = CreateSimulatedCommunicators({"a", "b"});
  const Model model;
  CrossCheckVerdict other;
  std::thread thread(
      [&] { other = ReplicaCheck(std::move(ranks[1]), seconds(60)).Run(31, model.Tensors()); });
  const CrossCheckVerdict verdict = ReplicaCheck(std::move(ranks[0]), seconds(60)).Run(30, model.Tensors());
  thread.join();
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_EQ(other.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("rank 0 (a): iteration 30, rank 1 (b): iteration 31"));
}

TEST(ReplicaCheck, AMissingRankIsNamedAndTakesPartAgainLater) {
  auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
  std::promise<void> given_up, caught_up;
  std::vector<std::thread> threads;
  std::vector<std::vector<CrossCheckVerdict>> verdicts(3);
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const Model model;
      ReplicaCheck check(std::move(ranks[rank]), seconds(1));
      if (rank == 2) given_up.get_future().wait();
      verdicts[rank].push_back(check.Run(0, model.Tensors()));
      if (rank == 0) {
        given_up.set_value();
        caught_up.get_future().wait();
      }
      if (rank == 2) caught_up.set_value();
      verdicts[rank].push_back(check.Run(1, model.Tensors()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(verdicts[rank][0].outcome(), NOT_COMPARED);
    EXPECT_THAT(verdicts[rank][0].missing_ranks(), ElementsAre(2));
    EXPECT_THAT(verdicts[rank][0].reason(), HasSubstr("nothing from rank 2 (c) within 0.5 s"));
    EXPECT_EQ(verdicts[rank][1].outcome(), BITWISE_EQUAL) << rank << verdicts[rank][1].DebugString();
  }
}

TEST(ReplicaCheck, ASilentRankIsWaitedForOnlyOnce) {
  constexpr auto kTimeout = seconds(1);
  constexpr int kNumChecks = 20;
  const Model model;
  for (const int silent : {0, 1}) {
    auto ranks = CreateSimulatedCommunicators({"a", "b"});
    ReplicaCheck check(std::move(ranks[1 - silent]), kTimeout);
    const auto start = std::chrono::steady_clock::now();
    for (int iteration = 0; iteration < kNumChecks; ++iteration) {
      const CrossCheckVerdict verdict = check.Run(iteration, model.Tensors());
      EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
      EXPECT_THAT(verdict.reason(), HasSubstr(silent == 0 ? "nothing from rank 0 (a) within 1 s"
                                                          : "nothing from rank 1 (b) within 0.5 s"));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, kNumChecks * kTimeout / 4);
  }
}

TEST(ReplicaTensors, WhatIsAskedOfNoTensorIsAnError) {
  const Model model;
  const std::vector<NamedTensor> named = model.Tensors();
  internal::ReplicaTensors tensors(named);
  tensors.Announce(0);
  const auto has_error = [&](const std::function<void(internal::ReplicaRequest&)>& ask) {
    internal::ReplicaRequest request;
    ask(request);
    return tensors.Answer(request).has_error();
  };
  for (int64_t at = -2; at <= 6; ++at) {
    EXPECT_EQ(has_error([&](auto& request) { request.set_leaves_of_tensor(at); }), at < 0 || at > 3) << at;
    for (int64_t end = -2; end <= 6; ++end) {
      EXPECT_EQ(has_error([&](auto& request) {
                  request.mutable_digests()->set_begin(at);
                  request.mutable_digests()->set_end(end);
                }),
                at < 0 || end < at || end > 4);
    }
    // By name, they are "empty", "layer.bias", "layer.weights" and "step", of so many blocks.
    const int64_t num_blocks =
        at < 0 || at > 3 ? 0 : std::vector<int64_t>{0, 1, 3, 1}[static_cast<size_t>(at)];
    for (int64_t block = -1; block <= 4; ++block) {
      EXPECT_EQ(has_error([&](auto& request) {
                  request.mutable_block()->set_tensor(at);
                  request.mutable_block()->set_block(block);
                }),
                block < 0 || block >= num_blocks)
          << at << ", block " << block;
    }
  }
}

TEST(ReplicaCheck, AnnouncesFiftyBytesWhateverTheNumberOfTensors) {
  auto ranks = CreateSimulatedCommunicators({"a", "b"});
  const Model model;
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 1000; ++i) {
    tensors.push_back({"tensor" + std::to_string(i), {TensorView(model.bias.data(), {1}), nullptr}});
  }
  ReplicaCheck(std::move(ranks[1]), milliseconds(1)).Run(1'000'000, tensors);
  const auto announcement = ranks[0]->Receive(1, 0, Deadline::Now());
  ASSERT_TRUE(announcement.ok()) << announcement.status();
  EXPECT_LE(announcement->size(), 50u);
}

TEST(ReplicaCheck, WhereDigestsCannotBeComparedThoseWhoWentOnAreNotCalledMissing) {
  for (const bool fails : {false, true}) {
    auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
    ReplicaCheckOptions options;
    options.are_equal = [fails](absl::Span<const uint64_t>, Deadline deadline) -> absl::StatusOr<bool> {
      EXPECT_LE(deadline.Remaining(), milliseconds(100)) << "a quarter of the time";
      if (fails) return absl::UnavailableError("the library is gone");
      return false;
    };
    const Model model;
    const CrossCheckVerdict verdict =
        ReplicaCheck(std::move(ranks[0]), milliseconds(400), options).Run(3, model.Tensors());
    EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
    EXPECT_EQ(verdict.missing_ranks_size(), fails ? 0 : 2);
    const std::string late = "nothing from ranks 1, 2 within 0.2 s";
    EXPECT_EQ(verdict.reason(),
              fails ? "the digests could not be compared: the library is gone; then " + late : late);
  }
}

TEST(ReplicaCheck, ADifferenceAmongThoseThereIsReportedThoughOneIsMissing) {
  auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
  CrossCheckVerdict verdict;
  std::thread other([&] {
    Model changed;
    changed.bias[0] = 1;
    ReplicaCheck(std::move(ranks[1]), seconds(60)).Run(3, changed.Tensors());
  });
  const Model model;
  verdict = ReplicaCheck(std::move(ranks[0]), milliseconds(500)).Run(3, model.Tensors());
  other.join();
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_THAT(verdict.missing_ranks(), ElementsAre(2));
  EXPECT_EQ(verdict.tensor(), "layer.bias");
}

TEST(ReplicaCheck, ARankWithoutTensorsSaysWhyAndTheOthersAreCompared) {
  auto ranks = CreateSimulatedCommunicators({"a", "b", "c", "d", "e"});
  std::vector<CrossCheckVerdict> verdicts(5);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 5; ++rank) {
    threads.emplace_back([&, rank] {
      ReplicaCheck check(std::move(ranks[rank]), seconds(60));
      Model model;
      if (rank == 1) check.RunWithoutTensors(3, absl::DataLossError("tensors.json is cut"));
      if (rank != 1) check.Run(3, model.Tensors());
      if (rank == 3) model.bias[0] = 1;
      verdicts[rank] = rank == 1 ? check.RunWithoutTensors(4, absl::DataLossError("tensors.json is cut"))
                                 : check.Run(4, model.Tensors());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(verdicts[2].outcome(), DIFFERENT);
  EXPECT_THAT(verdicts[2].reason(), HasSubstr("rank 1 (b): tensors.json is cut"));
  EXPECT_THAT(verdicts[2].missing_ranks(), ElementsAre(1));
  EXPECT_THAT(verdicts[2].culprit_ranks(), ElementsAre(3));
}

TEST(ReplicaCheck, TheOrderInWhichARankAddsTensorsDoesNotMatter) {
  for (const bool differs : {false, true}) {
    const auto verdicts = Check(
        3, [&](int rank, Model& model) { model.step[0] += rank == 2 && differs ? 1 : 0; },
        [](int rank, std::vector<NamedTensor>& tensors) {
          if (rank == 1) std::rotate(tensors.begin(), tensors.begin() + 1, tensors.end());
        });
    EXPECT_EQ(verdicts[1].outcome(), differs ? DIFFERENT : BITWISE_EQUAL) << verdicts[1].DebugString();
    if (!differs) continue;
    EXPECT_EQ(verdicts[1].tensor(), "step");
    EXPECT_THAT(verdicts[1].culprit_ranks(), ElementsAre(2));
  }
}

TEST(ReplicaCheck, TheFirstTensorIsTheFirstThatRankZeroAdded) {
  const auto verdicts = Check(3, [](int rank, Model& model) {
    if (rank != 1) return;
    model.bias[0] = 1;
    model.weights[0] = 1;
  });
  EXPECT_EQ(verdicts[2].tensor(), "layer.weights");
  EXPECT_EQ(verdicts[2].tensor_position(), 0);
  EXPECT_EQ(verdicts[2].num_different_tensors(), 2);
}

TEST(ReplicaCheck, ReadsStridedTensors) {
  const auto verdicts = Check(3, {}, [](int rank, std::vector<NamedTensor>& tensors) {
    // A transposed view of the same memory; one rank brings it in another order.
    const void* data = tensors[0].tensor.view.data();
    tensors[0].tensor.view = rank == 1 ? TensorView(data, DType::kFloat32, {100, 100}, {1, 100})
                                       : TensorView(data, DType::kFloat32, {100, 100}, {100, 1});
  });
  EXPECT_THAT(verdicts[0].culprit_ranks(), ElementsAre(1));
  EXPECT_EQ(verdicts[0].differences(0).element(), 1);
  EXPECT_EQ(verdicts[0].differences(0).value(), "50");
  EXPECT_EQ(verdicts[0].differences(0).expected(), "0.5");
}

}  // namespace
}  // namespace ott
