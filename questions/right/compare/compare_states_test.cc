// Compares random small checkpoints by the rules for states, written once more.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/compare/report.h"
#include "ott/questions/right/compare/compare_runs.h"

namespace ott::compare {
namespace {

// Each trial has one of these names.
constexpr const char* kHeads[] = {"lm_head.weight", "head.output_layer", "head.output_layer.weight"};
const char* g_head = kHeads[0];
constexpr char kEmbedding[] = "model.embed.weight";
constexpr char kNorm[] = "rank_1.model.norm.weight";
// Each trial has one of these two.
constexpr const char* kBuckets[] = {"optimizer.distributed.dp_group_idx_0.bucket_idx_0.exp_avg",
                                    "optimizer.distributed.dp_group_idx_0.param_state.exp_avg"};
const char* g_bucket = kBuckets[0];
constexpr char kSteps[] = "optimizer.param_groups.0.step";
constexpr char kStepOfFirstRank[] = "optimizer.param_state.7.step";

enum class Gradient { kUnsaid, kRequired, kFrozen };

struct Numbers {
  bool is_bfloat16 = false;
  std::vector<int> shape;
  std::vector<float> numbers;
  bool is_turned = false;  // column by column in memory
  Gradient gradient = Gradient::kUnsaid;
  std::string storage;      // tensors of one storage share their elements
  bool is_aligned = false;  // in the file, as Write() finds

  // Returns the elements row by row.
  std::string Bytes() const {
    std::string bytes;
    for (const float number : numbers) {
      char of_number[4];
      std::memcpy(of_number, &number, 4);
      bytes.append(is_bfloat16 ? of_number + 2 : of_number, is_bfloat16 ? 2 : 4);
    }
    return bytes;
  }
  bool IsSame(const Numbers& other) const {
    return is_bfloat16 == other.is_bfloat16 && shape == other.shape && Bytes() == other.Bytes();
  }
  Numbers Turned() const {
    Numbers turned = *this;
    std::swap(turned.numbers[1], turned.numbers[2]);
    return turned;
  }
};
using State = std::map<std::string, Numbers>;

template <typename Number>
std::string Raw(Number number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Returns a pickle's text or number.
std::string Pickled(const std::string& text) {
  return absl::StrCat("X", Raw(static_cast<uint32_t>(text.size())), text);
}
std::string Pickled(int number) { return "J" + Raw(number); }

// Writes a file as torch.save() did before PyTorch 1.6: pickles, and the storages.
std::string Write(const std::string& name, const std::string& about, State& state) {
  const std::string dictionary = "ccollections\nOrderedDict\n)R";
  std::string tensors = "\x80\x02}(", keys = "\x80\x02](";
  std::set<std::string> storages;
  for (const auto& [path, tensor] : state) {
    const auto num_elements = static_cast<int>(tensor.numbers.size());
    std::string dims, strides;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      dims += Pickled(tensor.shape[i]);
      strides += Pickled(tensor.shape.size() == 1 || (i == 0) == tensor.is_turned ? 1 : 2);
    }
    tensors += Pickled(path);
    if (tensor.gradient == Gradient::kFrozen) tensors += "ctorch._utils\n_rebuild_parameter\n(";
    absl::StrAppend(&tensors, "ctorch._utils\n_rebuild_tensor_v2\n((", Pickled("storage"), "ctorch\n",
                    tensor.is_bfloat16 ? "BFloat16" : "Float", "Storage\n", Pickled(tensor.storage),
                    Pickled("cpu"), Pickled(num_elements), "NtQ", Pickled(0), "(", dims, "t(", strides, "t",
                    tensor.gradient == Gradient::kRequired ? "\x88" : "\x89", dictionary, "tR");
    if (tensor.gradient == Gradient::kFrozen) absl::StrAppend(&tensors, "\x89", dictionary, "tR");
    if (storages.insert(tensor.storage).second) keys += Pickled(tensor.storage);
  }
  std::string file = absl::StrCat("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "\x80\x02", Pickled(1001),
                                  ".", "\x80\x02", Pickled(about), ".", tensors, "u.", keys, "e.");
  storages.clear();
  for (auto& [path, tensor] : state) {
    const bool is_new = storages.insert(tensor.storage).second;
    if (is_new) file += Raw(static_cast<int64_t>(tensor.numbers.size()));
    tensor.is_aligned =
        is_new ? file.size() % (tensor.is_bfloat16 ? 2 : 4) == 0 : state.at(g_head).is_aligned;
    if (is_new) file += (tensor.is_turned ? tensor.Turned() : tensor).Bytes();
  }
  std::string path = absl::StrCat(testing::TempDir(), "/", name, ".pt");
  EXPECT_TRUE(WriteFileAtomically(path, file).ok());
  return path;
}

enum class By { kDefault, kBits, kTolerance, kNan };

bool IsTensor(const std::string& path) { return !absl::EndsWith(path, ".step"); }

bool Agree(const std::string& path, const Numbers& a, const Numbers& b, By by) {
  const StateKind kind = StateKindOf(path, IsTensor(path));
  const bool is_kept_exact = kind == StateKind::kMoments || kind == StateKind::kMasterWeights;
  if (a.shape != b.shape) return false;
  if (a.is_bfloat16 != b.is_bfloat16 && (by == By::kBits || is_kept_exact)) return false;
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    const float x = a.numbers[i], y = b.numbers[i];
    const bool agree = by == By::kTolerance ? std::abs(x - y) <= 0.5f
                       : by == By::kNan     ? x == y || (std::isnan(x) && std::isnan(y))
                                            : Raw(x) == Raw(y);
    if (!agree) return false;
  }
  return true;
}

State MakeState(std::mt19937& random) {
  State state;
  for (const char* const path : {g_head, kEmbedding, kNorm, "optimizer.master.0", kSteps, kStepOfFirstRank,
                                 "optimizer.state.0.exp_avg", "optimizer.state.0.step", g_bucket}) {
    const std::string name = path;
    const bool has_half = name == g_head || name == kStepOfFirstRank || name == g_bucket;
    if (name != "optimizer.state.0.step" && random() % (has_half ? 2 : 6) == 0) continue;
    Numbers& tensor = state[name];
    tensor.storage = name;
    if (random() % 4 == 0) tensor.gradient = static_cast<Gradient>(random() % 3);
    if (!IsTensor(name)) {
      tensor.numbers = {random() % 4 == 0 ? 6.0f : 5};
      continue;
    }
    tensor.shape = random() % 12 == 0 ? std::vector<int>{4} : std::vector<int>{2, 2};
    tensor.numbers = {0, 2, 3, 4};
    // Moments and master weights have numbers of their own.
    if (name.find("optimizer.") == 0) tensor.numbers[1] = name == "optimizer.master.0" ? 8 : 16;
    if (name == g_bucket && random() % 2 == 0) {
      // The bucket is of another number of ranks.
      tensor.shape = {3};
      tensor.numbers.pop_back();
    }
    if (random() % 4 == 0) tensor.numbers.back() += 1;
    if (random() % 8 == 0) tensor = tensor.Turned();
    if (name == g_bucket) continue;
    tensor.is_turned = tensor.shape.size() == 2 && random() % 4 == 0;
    tensor.is_bfloat16 = name != kNorm && random() % 5 == 0;
    if (tensor.is_bfloat16 || name.find("optimizer.") == 0) continue;
    if (random() % 4 == 0) tensor.numbers[0] = -0.0f;
    if (random() % 4 == 0) tensor.numbers[2] = std::nanf("");
  }
  if (state.count(g_head) > 0 && state.count(kEmbedding) > 0 && random() % 2 == 0) {
    Numbers& head = state[g_head];
    const Gradient gradient = head.gradient;
    head = state[kEmbedding];
    head.gradient = gradient;
    if (random() % 2 == 0) head.storage = g_head;
  }
  return state;
}

// Returns what is left out as the buckets of another number of ranks.
std::set<std::string> Buckets(const State& a, const State& b, const std::map<std::string, bool>& passes) {
  std::set<std::string> buckets;
  size_t size[2] = {};
  for (const State* const state : {&a, &b}) {
    if (state->count(g_bucket) > 0) size[state == &b] = state->at(g_bucket).numbers.size();
    // One side has no optimizer.
    if (state->count(g_bucket) + state->count("optimizer.state.0.exp_avg") == 0) return buckets;
  }
  for (const auto& [path, pass] : passes) {
    const bool is_one_sided = a.count(path) + b.count(path) == 1;
    if (!pass && size[0] != size[1] && path.find("optimizer.") == 0 &&
        (is_one_sided || path == g_bucket || path == kStepOfFirstRank))
      buckets.insert(path);
  }
  return buckets;
}

// Returns what is said of tensors that pass.
std::vector<std::string> RemarksOn(const State& a, const State& b) {
  std::map<std::string, std::vector<std::string>> paths;
  for (const auto& [path, tensor] : a) {
    const auto other = b.find(path);
    if (other != b.end() && tensor.is_aligned && other->second.is_aligned &&
        tensor.shape == other->second.shape && tensor.is_turned != other->second.is_turned)
      paths["lies in another order of its dimensions in memory"].push_back(path);
  }
  const auto shares = [](const State& state) {
    return state.count(g_head) > 0 && state.at(g_head).storage == kEmbedding && state.at(g_head).is_aligned;
  };
  for (const bool of_a : {true, false}) {
    const State& own = of_a ? a : b;
    const State& others = of_a ? b : a;
    const char* const side = of_a ? " in the reference alone" : " in the current alone";
    for (const auto& [path, tensor] : own) {
      const auto other = others.find(path);
      if (tensor.gradient == Gradient::kUnsaid ||
          (other != others.end() && other->second.gradient == tensor.gradient))
        continue;
      const char* const said = tensor.gradient == Gradient::kRequired ? "True" : "False";
      paths[absl::StrCat("has requires_grad=", said, side)].push_back(path);
    }
    if (shares(own) && !shares(others) && others.count(kEmbedding) > 0 && others.at(kEmbedding).is_aligned)
      paths[absl::StrCat("shares its elements with ", g_head, side)] = {kEmbedding};
  }
  std::vector<std::string> remarks;
  for (const auto& [what, of] : paths) {
    remarks.push_back(
        absl::StrCat(of[0], of.size() > 1 ? absl::StrCat(" (and ", of.size() - 1, " more)") : "", " ", what));
  }
  return remarks;
}

TEST(CompareStates, WhatPassesIsByItsDefinition) {
  std::mt19937 random(1);
  int num_tied = 0, num_explained = 0;
  for (int trial = 0; trial < 800; ++trial) {
    const By by = static_cast<By>(trial % 4);
    g_bucket = kBuckets[trial / 4 % 2];
    g_head = kHeads[trial / 8 % 3];
    State a = MakeState(random), b = MakeState(random);
    const std::string files[2] = {Write("a", std::string(random() % 4, 'x'), a),
                                  Write("b", std::string(random() % 4, 'x'), b)};
    std::map<std::string, bool> expected;
    for (const State& state : {a, b}) {
      for (const auto& [path, tensor] : state)
        expected[path] = a.count(path) > 0 && b.count(path) > 0 && Agree(path, a.at(path), b.at(path), by);
    }
    std::vector<std::string> notes;
    // One side alone has weights twice.
    const bool in_a = a.count(g_head) > 0, in_b = b.count(g_head) > 0;
    if (in_a != in_b && expected.count(kEmbedding) > 0 && expected[kEmbedding]) {
      const State& own = in_a ? a : b;
      if (own.at(g_head).IsSame(own.at(kEmbedding))) {
        expected[g_head] = true;
        notes.push_back(absl::StrCat(g_head, ", which only the ", in_a ? "reference" : "current",
                                     " has, is bit for bit its ", kEmbedding, ": they are tied"));
        ++num_tied;
      }
    }
    const std::set<std::string> buckets = Buckets(a, b, expected);
    for (const std::string& path : buckets) expected.erase(path);
    if (expected.count(kStepOfFirstRank) > 0 && a.count(kStepOfFirstRank) + b.count(kStepOfFirstRank) == 1 &&
        expected.count(kSteps) > 0 && expected[kSteps]) {
      expected.erase(kStepOfFirstRank);
      notes.push_back(absl::StrCat(
          kStepOfFirstRank, " (and 0 more) is on one side alone, whose first rank held that parameter"));
    }
    for (const bool is_current : {true, false}) {
      const auto count = std::count_if(expected.begin(), expected.end(), [&](const auto& entry) {
        const State& wide = is_current ? b : a;
        const State& narrow = is_current ? a : b;
        return entry.second && a.count(entry.first) + b.count(entry.first) == 2 &&
               narrow.at(entry.first).is_bfloat16 && !wide.at(entry.first).is_bfloat16;
      });
      const char* const sides[] = {is_current ? "current" : "reference",
                                   is_current ? "reference" : "current"};
      if (count > 0)
        notes.push_back(absl::StrCat(count, count == 1 ? " tensor" : " tensors", ": the ", sides[0],
                                     " rounded to bfloat16 is the ", sides[1]));
    }
    for (std::string& remark : RemarksOn(a, b)) notes.push_back(std::move(remark));
    CompareRunsOptions options;
    options.keep_results = true;
    Tolerance& tolerance = options.compare.tensors.tolerance;
    tolerance.bitwise = by == By::kBits;
    tolerance.nan_equal = by == By::kNan;
    tolerance.atol = by == By::kTolerance ? 0.5 : 0;
    const auto comparison = CompareRuns(files[0], files[1], options).value();
    const DumpSummary& dump = comparison.dumps.at(0);
    std::map<std::string, bool> is;
    std::map<StateKind, StateSummary> states;
    for (const NamedComparison& result : dump.results.results) {
      const std::string& path = result.path;
      const bool passes = is[path] = Passes(result.comparison.status);
      const StateKind kind = StateKindOf(path, IsTensor(path));
      StateSummary& state = states[kind];
      state.kind = kind;
      ++state.num_values;
      const bool is_unknown = CouldNotCompare(result.comparison.status);
      state.num_failures += !passes && !is_unknown;
      state.num_not_compared += is_unknown;
      state.num_missing += !passes && b.count(path) == 0;
      state.num_extra += !passes && a.count(path) == 0;
      if (!passes && path == kNorm) state.failing_ranks = {1};
      // The tensor that is named may be another one that differs.
      const auto found = b.find(path), own = a.find(path);
      const std::string& detail = result.comparison.detail;
      if (passes || found == b.end() || result.comparison.status == CompareStatus::kDTypeDiffers) continue;
      const auto is_said_of = [&](const std::string& other) {
        return absl::StrContains(detail, absl::StrCat("it is, bit for bit, ", other, " of the reference"));
      };
      bool is_same = false, is_itself = false, is_said = false;
      for (const auto& [other, tensor] : a) {
        if (expected.count(other) == 0 || expected[other] || !IsTensor(other) ||
            !tensor.IsSame(found->second))
          continue;
        is_same = true;
        is_itself = is_itself || other == path;
        is_said = is_said || (other != path && is_said_of(other));
      }
      EXPECT_TRUE(is_itself || is_said == is_same) << trial << " " << path << ": " << detail;
      EXPECT_EQ(absl::StrContains(detail, "it is, bit for bit"), is_said) << trial << " " << detail;
      const bool is_transposed = own != a.end() && IsTensor(path) && own->second.shape.size() == 2 &&
                                 own->second.Turned().IsSame(found->second);
      EXPECT_EQ(absl::StrContains(detail, "it is that of the reference, transposed"),
                !is_said && is_transposed)
          << trial << " " << detail;
      num_explained += is_said;
    }
    EXPECT_EQ(is, expected) << trial;
    ASSERT_EQ(dump.states.size(), states.size());
    auto state = dump.states.begin();
    for (const auto& [kind, summary] : states) {
      EXPECT_EQ(state->kind, kind);
      EXPECT_EQ(state->num_values, summary.num_values);
      EXPECT_EQ(state->num_failures, summary.num_failures) << trial;
      EXPECT_EQ(state->num_not_compared, summary.num_not_compared) << trial;
      EXPECT_EQ(state->num_missing, summary.num_missing) << trial;
      EXPECT_EQ(state->num_extra, summary.num_extra) << trial;
      EXPECT_EQ(state->failing_ranks, summary.failing_ranks) << trial;
      ++state;
    }
    EXPECT_EQ(comparison.notes, notes) << trial;
    EXPECT_EQ(comparison.problems.size(), !buckets.empty()) << trial;
    for (const std::string& problem : comparison.problems) {
      const auto is_said_of = [&](const std::string& path) {
        return problem == absl::StrCat(buckets.size(), " values of the optimizer were not compared, such as ",
                                       path,
                                       ": Megatron's buckets hold them by tensor- and pipeline-parallel ",
                                       "rank; save it with --dist-ckpt-optim-fully-reshardable");
      };
      EXPECT_TRUE(std::any_of(buckets.begin(), buckets.end(), is_said_of)) << trial << " " << problem;
    }
    const bool all_pass = std::all_of(is.begin(), is.end(), [](const auto& entry) { return entry.second; });
    EXPECT_EQ(comparison.verdict(), !all_pass          ? Verdict::kDifferent
                                    : !buckets.empty() ? Verdict::kCouldNotCompare
                                                       : Verdict::kEqual);
  }
  EXPECT_GT(num_tied, 8);
  EXPECT_GT(num_explained, 8);
}

TEST(CompareStates, OtherAttributesThanRequiresGradCount) {
  std::string paths[2];
  for (int i = 0; i < 2; ++i) {
    paths[i] = absl::StrCat(testing::TempDir(), "/", i, ".pkl");
    const std::string file =
        absl::StrCat("\x80\x02}(", Pickled("w (attributes)"), "}(", Pickled("tag"), Pickled(i),
                     Pickled("requires_grad"), "\x88u", Pickled("v (attributes)"), Pickled(1), "u.");
    ASSERT_TRUE(WriteFileAtomically(paths[i], file).ok());
  }
  EXPECT_EQ(CompareRuns(paths[0], paths[1], {})->verdict(), Verdict::kDifferent);
}

}  // namespace
}  // namespace ott::compare
