#include "ott/dist/check/replica_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/check/ranks_for_test.h"
#include "dist/check/replica_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/digest/digest.h"
#include "ott/core/dump/stand_in.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

template <typename T>
T FlipBit(T value, int bit) {
  reinterpret_cast<unsigned char*>(&value)[bit / 8] ^= static_cast<unsigned char>(1 << (bit % 8));
  return value;
}

std::string Shortest(float value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

// Runs one check on `size` ranks; prepare may change a rank's tensors. Verdicts by rank.
std::vector<CrossCheckVerdict> Check(
    int size, const std::function<void(int, ReplicaModel&)>& change,
    const std::function<void(int, std::vector<NamedTensor>&)>& change_tensors = {},
    const ReplicaCheckOptions& options = {}) {
  std::vector<CrossCheckVerdict> verdicts(size);
  OnRanks(size, [&](int rank, Communicator& ranks) {
    ReplicaModel model;
    if (change) change(rank, model);
    std::vector<NamedTensor> tensors = model.Tensors();
    if (change_tensors) change_tensors(rank, tensors);
    ReplicaCheck check(GroupOf(ranks), seconds(60), options);
    verdicts[rank] = check.Run(30, tensors);
  });
  return verdicts;
}

TEST(ReplicaCheck, OfAnyRanksTheVerdictIsThatOfTheDefinition) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 120; ++trial) {
    const auto one_in = [&](int n) { return random() % n == 0; };
    const int size = 1 + static_cast<int>(random() % 7);
    ReplicaCheckOptions options;
    options.mode = one_in(2) ? SHARDS : REPLICAS;
    options.kind_of = [](const std::string& path) {
      return path == "text" ? TENSOR_KIND_OTHER : TENSOR_KIND_PARAMETER;
    };
    const int step = one_in(2) ? 3 : 1;
    for (int rank = 0; rank < size && step == 3; ++rank) options.names.push_back(step * rank);
    // A rank has content 0, 1 or 2 of each tensor: as it is, or changed.
    const auto length = static_cast<int64_t>(1 + random() % 150);
    std::vector<float> weights[3];
    std::string texts[3];
    for (int content = 0; content < 3; ++content) {
      for (int i = 0; i < 100 * 400; ++i) weights[content].push_back(0.5f * static_cast<float>(i));
      for (int64_t i = 0; i < length; ++i) texts[content].push_back(static_cast<char>('a' + i % 26));
      if (content == 0) continue;
      for (uint32_t i = random() % 2; i < 2; ++i) {
        float& element = weights[content][random() % weights[0].size()];
        element = FlipBit(element, static_cast<int>(random() % 22));
      }
      if (one_in(3)) {
        texts[content].resize(random() % length);
      } else {
        texts[content][random() % length] = static_cast<char>('0' + content);
      }
    }
    // Some ranks have them column by column.
    std::vector<float> turned[3];
    for (int content = 0; content < 3; ++content) {
      for (size_t i = 0; i < weights[0].size(); ++i)
        turned[content].push_back(weights[content][i % 100 * 400 + i / 100]);
    }
    const std::vector<float> same = {1};
    std::vector<std::map<std::string, int>> has(size);
    std::vector<std::vector<NamedTensor>> tensors(size);
    std::vector<int> problems;
    const bool any_differ = !one_in(3), nothing = one_in(20), all_have_problems = one_in(8);
    for (int rank = 0; rank < size; ++rank) {
      for (const char* const path : {"weights", "text"})
        has[rank][path] = any_differ && one_in(3) ? static_cast<int>(random() % 3) : 0;
      const std::string& text = texts[has[rank]["text"]];
      tensors[rank] = {
          {"weights",
           {one_in(2)
                ? TensorView(weights[has[rank]["weights"]].data(), {100, 400})
                : TensorView(turned[has[rank]["weights"]].data(), DType::kFloat32, {100, 400}, {1, 100}),
            nullptr}},
          {"text",
           {TensorView(text.data(), DType::kUInt8, {static_cast<int64_t>(text.size())}), nullptr},
           NamedTensor::Content::kText},
          {"same", {TensorView(same.data(), {1}), nullptr}}};
      std::shuffle(tensors[rank].begin(), tensors[rank].end(), random);
      if (nothing) tensors[rank].clear();
      if (all_have_problems || one_in(8)) problems.push_back(rank);
    }
    const auto has_problem = [&](int rank) { return std::count(problems.begin(), problems.end(), rank) > 0; };
    const bool is_damaged = one_in(2), has_library = one_in(2);
    const std::string incomplete = one_in(5) ? "no tensor is \"x\"" : "";
    std::vector<CrossCheckVerdict> verdicts(size);
    OnRanks(size, [&](int rank, Communicator& ranks) {
      ReplicaCheckOptions own = options;
      if (has_library) own.are_equal = AreEqualOn(GroupOf(ranks));
      ReplicaCheck check(GroupOf(ranks), seconds(60), own);
      std::vector<NamedTensor> mine = tensors[rank];
      if (has_problem(rank)) {
        mine.push_back(
            {"damaged", {TensorView(same.data(), {1}), nullptr}, NamedTensor::Content::kDigest, "?"});
      }
      verdicts[rank] = !is_damaged && has_problem(rank)
                           ? check.RunWithoutTensors(30, absl::DataLossError("damaged: cut"))
                           : check.Run(30, mine, incomplete);
    });

    int num_different = 0;
    std::string first;
    std::map<int, std::vector<int>> contents;  // the ranks that have each content of the first
    std::map<TensorKind, int64_t> different_of_kind;
    for (const NamedTensor& tensor : tensors[0]) {
      std::map<int, std::vector<int>> ranks_of;
      for (int rank = 0; rank < size; ++rank) {
        if (tensor.path != "same" && !has_problem(rank)) ranks_of[has[rank][tensor.path]].push_back(rank);
      }
      // A text may have been changed in the same way twice.
      if (tensor.path == "text" && texts[1] == texts[2]) {
        ranks_of[1].insert(ranks_of[1].end(), ranks_of[2].begin(), ranks_of[2].end());
        std::sort(ranks_of[1].begin(), ranks_of[1].end());
        for (const int content : {1, 2}) {
          if (content == 2 || ranks_of[content].empty()) ranks_of.erase(content);
        }
      }
      if (ranks_of.size() < 2) continue;
      ++different_of_kind[options.kind_of(tensor.path)];
      if (num_different++ > 0) continue;
      first = tensor.path;
      contents = ranks_of;
    }
    const bool compares = !has_problem(0) && size > 1 && !nothing;
    const Outcome outcome = compares && num_different > 0                           ? DIFFERENT
                            : !compares || !problems.empty() || !incomplete.empty() ? NOT_COMPARED
                                                                                    : BITWISE_EQUAL;
    int expected = -1;
    for (const auto& [content, ranks] : contents) {
      if (2 * ranks.size() > static_cast<size_t>(size)) expected = content;
    }
    const bool has_majority = expected >= 0;
    std::vector<int> culprits;
    for (const auto& [content, ranks] : contents) {
      if (!has_majority && std::count(ranks.begin(), ranks.end(), 0) > 0) expected = content;
    }
    for (const auto& [content, ranks] : contents) {
      if (has_majority && content != expected) culprits.insert(culprits.end(), ranks.begin(), ranks.end());
    }
    std::sort(culprits.begin(), culprits.end());
    const auto name = [&](std::vector<int> ranks) {
      for (int& rank : ranks) rank *= step;
      return ranks;
    };
    const auto host = [](std::vector<int> ranks) {
      std::vector<std::string> hosts;
      for (const int rank : ranks) hosts.push_back(HostOf(rank));
      return hosts;
    };
    for (int rank = 0; rank < size; ++rank) {
      const CrossCheckVerdict& verdict = verdicts[rank];
      const std::string all = verdict.DebugString();
      EXPECT_EQ(verdict.rank(), step * rank);
      EXPECT_EQ(verdict.host(), HostOf(rank));
      EXPECT_EQ(verdict.mode(), options.mode);
      EXPECT_EQ(verdict.iteration(), 30);
      EXPECT_EQ(verdict.outcome(), outcome) << all;
      EXPECT_EQ(verdict.worst_outcome(), outcome);
      EXPECT_THAT(verdict.missing_ranks(), ElementsAreArray(name(problems)));
      for (const int missing : problems) {
        EXPECT_THAT(verdict.reason(),
                    HasSubstr(absl::StrCat("rank ", step * missing, " (node", missing, "): damaged: ")));
      }
      if (outcome == NOT_COMPARED) {
        EXPECT_THAT(verdict.reason(), HasSubstr(!problems.empty() ? ""
                                                : nothing         ? "no tensor to compare"
                                                : size == 1       ? "one rank has no replicas"
                                                                  : incomplete));
      }
      EXPECT_THAT(verdict.reason(), HasSubstr(has_problem(0) ? "" : incomplete));
      if (outcome != DIFFERENT) {
        EXPECT_EQ(verdict.num_tensors(), has_problem(0) ? verdict.num_tensors() : nothing ? 0 : 3);
        continue;
      }
      EXPECT_EQ(verdict.num_different_tensors(), num_different) << all;
      EXPECT_EQ(verdict.tensor(), first) << all;
      EXPECT_EQ(tensors[0][verdict.tensor_position()].path, first);
      EXPECT_EQ(verdict.dtype(), first == "text" ? "text" : "float32");
      EXPECT_THAT(verdict.shape(), ElementsAreArray(first == "text" ? std::vector<int64_t>()
                                                                    : std::vector<int64_t>{100, 400}));
      EXPECT_EQ(verdict.has_majority(), has_majority) << all;
      EXPECT_THAT(verdict.culprit_ranks(), ElementsAreArray(name(culprits))) << all;
      EXPECT_THAT(verdict.culprit_hosts(), ElementsAreArray(host(culprits)));
      EXPECT_THAT(verdict.culprit_named_before(), ElementsAreArray(std::vector<int>(culprits.size(), 0)));
      ASSERT_EQ(verdict.kinds_size(), 2);
      for (const KindCount& count : verdict.kinds()) {
        EXPECT_EQ(count.num_tensors(), count.kind() == TENSOR_KIND_OTHER ? 1 : 2);
        EXPECT_EQ(count.num_different(), different_of_kind[count.kind()]);
      }
      ASSERT_EQ(verdict.differences_size(), contents.size() - 1) << all;
      for (const FirstDifference& difference : verdict.differences()) {
        const int content = std::find_if(contents.begin(), contents.end(), [&](const auto& of) {
                              return step * of.second[0] == difference.ranks(0);
                            })->first;
        ASSERT_NE(content, expected);
        EXPECT_THAT(difference.ranks(), ElementsAreArray(name(contents[content])));
        EXPECT_THAT(difference.hosts(), ElementsAreArray(host(contents[content])));
        if (first == "text") {
          const std::string &a = texts[content], &b = texts[expected];
          const auto at =
              static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
          const auto quoted = [&](const std::string& text) {
            const size_t begin = at - std::min<size_t>(at, 20), end = std::min(begin + 60, text.size());
            return (begin > 0 ? "\"..." : "\"") + text.substr(begin, end - begin) +
                   (end < text.size() ? "...\"" : "\"");
          };
          EXPECT_EQ(difference.element(), at);
          EXPECT_EQ(difference.value(), quoted(a));
          EXPECT_EQ(difference.expected(), quoted(b));
          continue;
        }
        const std::vector<float>&a = weights[content], &b = weights[expected];
        const auto at = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
        EXPECT_EQ(difference.element(), at) << all;
        EXPECT_THAT(difference.index(), ElementsAre(at / 400, at % 400));
        EXPECT_EQ(difference.value(), Shortest(a[at]));
        EXPECT_EQ(difference.expected(), Shortest(b[at]));
        float flipped = a[at];
        for (const int bit : difference.flipped_bits()) flipped = FlipBit(flipped, bit);
        EXPECT_EQ(flipped, b[at]) << all;
        EXPECT_EQ(difference.has_ulp_distance(), true);
        if (difference.flipped_bits_size() == 1) {
          EXPECT_EQ(difference.ulp_distance(), 1u << difference.flipped_bits(0));
        }
      }
    }
  }
}

// The verdict where each rank has one of the values in the last block of its weights, and a tenth of it,
// which is within the tolerance, before it: in the same block for an even number of ranks, else in the first.
CrossCheckVerdict CheckValues(const std::vector<double>& values, double atol, double rtol = 0) {
  ReplicaCheckOptions options;
  options.tolerance.emplace();
  options.tolerance->atol = atol;
  options.tolerance->rtol = rtol;
  options.kind_of = [](const std::string&) { return TensorKind(); };
  return Check(
      static_cast<int>(values.size()),
      [&](int rank, ReplicaModel& model) {
        model.weights[35000] = static_cast<float>(values[rank]);
        if (atol > 0) model.weights[values.size() % 2 == 0 ? 34990 : 0] = 0.1f * model.weights[35000];
        // NaN on all ranks is no difference.
        model.weights[35001] = std::numeric_limits<float>::quiet_NaN();
      },
      {}, options)[0];
}

TEST(ReplicaCheck, WithAToleranceABlockThatAgreesExcusesNoneBeforeIt) {
  ReplicaCheckOptions options;
  options.tolerance.emplace().atol = 0.5;
  const auto change = [](int rank, ReplicaModel& model) {
    if (rank != 1) return;
    model.weights[0] += 20;
    model.weights[35000] += 0.1f;
  };
  const CrossCheckVerdict verdict = Check(3, change, {}, options)[0];
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(1));
}

// 0.1 is within 0.095 of 1.1, and not of 1; whose digest comes first does not matter.
TEST(ReplicaCheck, WithARelativeToleranceEachMustBeWithinItOfTheOther) {
  for (int scale = 1; scale <= 12; ++scale) {
    EXPECT_EQ(CheckValues({1. * scale, 1.1 * scale}, 0, 0.095).outcome(), DIFFERENT) << scale;
    EXPECT_EQ(CheckValues({1.1 * scale, 1. * scale}, 0, 0.105).outcome(), WITHIN_TOLERANCE) << scale;
  }
}

TEST(ReplicaCheck, WithAToleranceThoseThatNobodyOfAMajorityAgreesWithAreNamed) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<double> biases(2 + random() % 5);
    const double step = trial % 3 == 0 ? 0.1 : 0.4;
    for (double& bias : biases)
      bias = (random() % 4 == 0 ? 20 : 4) * 0.1 + step * static_cast<double>(random() % 4);
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
    const CrossCheckVerdict verdict = CheckValues(biases, 0.5);
    EXPECT_EQ(verdict.outcome(), all_equal ? BITWISE_EQUAL : all_agree ? WITHIN_TOLERANCE : DIFFERENT);
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAreArray(culprits)) << verdict.DebugString();
    EXPECT_EQ(verdict.has_majority(), !culprits.empty()) << verdict.DebugString();
    std::set<int> shown;
    for (const FirstDifference& difference : verdict.differences())
      shown.insert(difference.ranks().begin(), difference.ranks().end());
    EXPECT_EQ(shown.empty(), all_agree);
    for (const FirstDifference& difference : verdict.differences()) {
      EXPECT_THAT(difference.index(), ElementsAre(87, 200));
      // Bits are told of the first element that has others.
      EXPECT_EQ(difference.has_ulp_distance(), biases.size() % 2 == 1);
      for (const int rank : difference.ranks())
        EXPECT_EQ(difference.value(), Shortest(static_cast<float>(biases[rank])));
      EXPECT_FALSE(agree(std::stod(difference.value()), std::stod(difference.expected())));
    }
    if (all_agree) {
      EXPECT_NEAR(
          verdict.max_abs_error(),
          *std::max_element(biases.begin(), biases.end()) - *std::min_element(biases.begin(), biases.end()),
          1e-6);
      double relative = 0;
      for (const double a : biases) {
        for (const double b : biases) relative = std::max(relative, a > b ? (a - b) / a : 0);
      }
      EXPECT_GE(verdict.max_rel_error(), relative - 1e-6);
    }
    if (!culprits.empty()) {
      EXPECT_TRUE(std::includes(shown.begin(), shown.end(), culprits.begin(), culprits.end()));
    }
    // Bits that differ are counted, which says nothing where they may.
    EXPECT_EQ(verdict.kinds_size(), 0);
  }
}

// The verdict where each rank brings what is in its tree. atol: 0 for no tolerance.
CrossCheckVerdict CheckTrees(const std::vector<Value>& trees, double atol = 0) {
  ReplicaCheckOptions options;
  if (atol > 0) options.tolerance.emplace().atol = atol;
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
  const struct {
    Value bad;
    std::string tensor, dtype, value, expected;
    bool within;
  } cases[] = {
      {tree(0.2, true, "cosine to 0"), "rate", "float64", "0.2", "0.1", true},
      {tree(0.1, false, "cosine to 0"), "nesterov", "bool", "0", "1", false},
      {tree(0.1, true, "cosine to 1e-5"), "schedule", "text", "\"cosine to 1e-5\"", "\"cosine to 0\"", false},
  };
  for (const auto& test : cases) {
    const CrossCheckVerdict verdict = CheckTrees({good, test.bad, good});
    EXPECT_EQ(verdict.tensor(), test.tensor);
    EXPECT_EQ(verdict.dtype(), test.dtype);
    ASSERT_EQ(verdict.differences_size(), 1) << verdict.DebugString();
    EXPECT_EQ(verdict.differences(0).value(), test.value);
    EXPECT_EQ(verdict.differences(0).expected(), test.expected);
    const CrossCheckVerdict within = CheckTrees({good, test.bad, good}, 0.5);
    EXPECT_EQ(within.outcome(), test.within ? WITHIN_TOLERANCE : DIFFERENT);
    EXPECT_THAT(within.culprit_ranks(), ElementsAreArray(std::vector<int>(test.within ? 0 : 1, 1)));
  }
  // More ranks than are compared with all others, of which none agree: what is shown is one difference.
  std::vector<Value> all_differ;
  for (int rank = 0; rank < 20; ++rank) all_differ.push_back(tree(double{10} * rank, true, ""));
  const CrossCheckVerdict nobody = CheckTrees(all_differ, 0.5);
  EXPECT_EQ(nobody.culprit_ranks_size(), 0);
  EXPECT_EQ(nobody.differences_size(), 1) << nobody.DebugString();
  // The end of a name counts: both lists have the same letters.
  const Value two = ValueMap{{"a", "x"}, {"b", "x"}}, one = ValueMap{{"atextb", "x"}};
  EXPECT_THAT(CheckTrees({two, one}).reason(), HasSubstr("tensor 0 is \"atextb\" text on rank 1 (node1), "));
  const CrossCheckVerdict kinds = CheckTrees({good, tree("0.1", true, "cosine to 0"), good});
  EXPECT_EQ(kinds.outcome(), DIFFERENT);
  EXPECT_THAT(kinds.reason(), HasSubstr("tensor 0 is \"rate\" text on rank 1 (node1), \"rate\" float64 []"));
}

TEST(ReplicaCheck, TensorsOfWhichOnlyDigestsAreKnownAreComparedByThem) {
  const std::vector<float> right = {1, 2, 3};
  const std::vector<float> wrong = {1, 2, 4};
  const auto whole = [](const std::vector<float>& data) {
    return Value(ValueMap{{"v", TensorView(data.data(), {3})}, {"w", TensorView(data.data(), {3})}});
  };
  const auto digest = [](const std::vector<float>& data) {
    const std::string text = ComputeDigest(TensorView(data.data(), {3})).value().root.ToString();
    const Value statistics =
        ValueMap{{"tensor_statistics", ValueMap{{"dtype", "float32"}, {"shape", "[3]"}, {"digest", text}}}};
    return Value(ValueMap{{"v", statistics}, {"w", statistics}});
  };
  EXPECT_EQ(CheckTrees({digest(right), digest(right)}).outcome(), BITWISE_EQUAL);
  EXPECT_EQ(CheckTrees({digest(right), whole(right)}).outcome(), BITWISE_EQUAL);
  const std::string reason = ": only its digest was dumped, with its statistics or an image";
  for (const bool is_digest : {true, false}) {
    const std::vector<Value> trees = {digest(right), is_digest ? digest(wrong) : whole(wrong), whole(right)};
    const CrossCheckVerdict verdict = CheckTrees(trees);
    EXPECT_EQ(verdict.outcome(), DIFFERENT);
    EXPECT_EQ(verdict.tensor(), "v");
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(1));
    EXPECT_EQ(verdict.reason(),
              absl::StrCat("not located: rank ", is_digest ? "1 (node1)" : "0 (node0)", reason));
    const CrossCheckVerdict within = CheckTrees(trees, 10);
    EXPECT_EQ(within.outcome(), NOT_COMPARED);
    EXPECT_EQ(within.reason(), "v: not compared: rank 0 (node0)" + reason) << "and no other is asked for";
  }
}

TEST(ReplicaCheck, MoreContentsThanAreComparedWithEachOtherStillHaveTheirCulprit) {
  std::vector<double> biases(40);
  for (size_t rank = 0; rank < biases.size(); ++rank) biases[rank] = 1e-6 * static_cast<double>(rank);
  EXPECT_EQ(CheckValues(biases, .001).outcome(), WITHIN_TOLERANCE);
  biases[7] = 1;
  const CrossCheckVerdict verdict = CheckValues(biases, .001);
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

TEST(ReplicaCheck, SaysHowOftenARankWasNamedBefore) {
  std::vector<CrossCheckVerdict> last(3);
  OnRanks(3, [&](int rank, Communicator& ranks) {
    ReplicaCheck check(GroupOf(ranks), seconds(60));
    for (const int culprit : {1, 2, 1, 1}) {
      ReplicaModel model;
      if (rank == culprit) model.bias[0] = 1;
      last[rank] = check.Run(0, model.Tensors());
    }
  });
  EXPECT_THAT(last[2].culprit_ranks(), ElementsAre(1));
  EXPECT_THAT(last[2].culprit_named_before(), ElementsAre(2));
}

TEST(ReplicaCheck, NamesAnotherNameShapeDTypeOrNumberOfTensors) {
  const float value = 0;
  const auto reason_of = [&](const std::function<void(std::vector<NamedTensor>&)>& change) {
    const CrossCheckVerdict verdict = Check(3, {}, [&](int rank, std::vector<NamedTensor>& tensors) {
      if (rank == 2) change(tensors);
    })[0];
    EXPECT_EQ(verdict.outcome(), DIFFERENT);
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(2));
    EXPECT_THAT(verdict.reason(), HasSubstr("\"" + verdict.tensor() + "\""));
    return verdict.reason();
  };
  EXPECT_THAT(
      reason_of([](auto& tensors) {
        tensors[0].tensor.view = TensorView(tensors[0].tensor.view.data(), DType::kFloat32, {400, 100});
      }),
      HasSubstr("float32 [400, 100] on rank 2 (node2), \"layer.weights\" float32 [100, 400] on ranks 0, 1"));
  EXPECT_EQ(
      reason_of([](auto& tensors) { tensors[1].path = "layer.gain"; }),
      "tensor 1 is \"layer.gain\" float64 [1] on rank 2 (node2), \"layer.bias\" float64 [1] on ranks 0, 1");
  EXPECT_THAT(reason_of([&](auto& tensors) { tensors[1].tensor.view = TensorView(&value, {1}); }),
              HasSubstr("\"layer.bias\" float32 [1] on rank 2"));
  EXPECT_THAT(reason_of([](auto& tensors) { tensors.pop_back(); }),
              HasSubstr("tensor 3 is missing on rank 2 (node2), \"step\" int64 [] on ranks 0, 1"));
}

}  // namespace
}  // namespace ott
