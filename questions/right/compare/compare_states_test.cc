// Compares random small checkpoints by the rules for states, written once more.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/questions/right/compare/compare_runs.h"

namespace ott::compare {
namespace {

struct Numbers {
  bool is_bfloat16 = false;
  std::vector<int> shape;
  std::vector<float> numbers;

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
};
using State = std::map<std::string, Numbers>;

// Writes a file of safetensors.
std::string Write(const std::string& name, const State& state) {
  std::string header = "{", bytes;
  for (const auto& [path, tensor] : state) {
    const size_t begin = bytes.size();
    bytes += tensor.Bytes();
    absl::StrAppend(&header, header.size() > 1 ? "," : "", "\"", path, "\":{\"dtype\":\"",
                    tensor.is_bfloat16 ? "BF16" : "F32", "\",\"shape\":[", absl::StrJoin(tensor.shape, ","),
                    "],\"data_offsets\":[", begin, ",", bytes.size(), "]}");
  }
  header += "}";
  const uint64_t size = header.size();
  const std::string path = testing::TempDir() + "/" + name + ".safetensors";
  EXPECT_TRUE(
      WriteFileAtomically(path, std::string(reinterpret_cast<const char*>(&size), 8) + header + bytes).ok());
  return path;
}

enum class By { kDefault, kBits, kTolerance, kNan };

bool Agree(const std::string& path, const Numbers& a, const Numbers& b, By by) {
  const bool is_kept_exact = path == "optimizer.state.0.exp_avg" || path == "optimizer.master.0";
  if (a.shape != b.shape) return false;
  if (a.is_bfloat16 != b.is_bfloat16) return by != By::kBits && !is_kept_exact && a.numbers == b.numbers;
  if (by == By::kDefault || by == By::kBits) return a.Bytes() == b.Bytes();
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    const bool are_nan = std::isnan(a.numbers[i]) && std::isnan(b.numbers[i]) && by == By::kNan;
    if (!are_nan && !(std::abs(a.numbers[i] - b.numbers[i]) <= (by == By::kTolerance ? 0.5f : 0)))
      return false;
  }
  return true;
}

TEST(CompareStates, WhatPassesIsByItsDefinition) {
  std::mt19937 random(1);
  int num_tied = 0, num_explained = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const By by = static_cast<By>(trial % 4);
    State sides[2];
    for (State& state : sides) {
      for (const char* const path :
           {"lm_head.weight", "model.embed.weight", "model.norm.weight", "optimizer.master.0",
            "optimizer.state.0.exp_avg", "optimizer.state.0.step"}) {
        const std::string name = path;
        const bool is_step = name == "optimizer.state.0.step", is_norm = name == "model.norm.weight";
        if (!is_step && random() % (name == "lm_head.weight" ? 2 : 6) == 0) continue;
        Numbers& tensor = state[name];
        tensor.shape = is_step              ? std::vector<int>()
                       : random() % 12 == 0 ? std::vector<int>{4}
                                            : std::vector<int>{2, 2};
        tensor.numbers = is_step ? std::vector<float>{5} : std::vector<float>{0, 2, 3, 4};
        // Moments and master weights have numbers of their own.
        if (name.find("optimizer.") == 0 && !is_step)
          tensor.numbers[1] = name == "optimizer.master.0" ? 8 : 16;
        tensor.is_bfloat16 = !is_norm && random() % 5 == 0;
        if (random() % 4 == 0) tensor.numbers.back() += 1;
        if (is_norm && random() % 4 == 0) tensor.numbers[0] = -0.0f;
        if (is_norm && random() % 4 == 0) tensor.numbers[2] = std::nanf("");
      }
    }
    const auto& [a, b] = sides;
    std::map<std::string, bool> expected;
    for (const State& state : sides) {
      for (const auto& [path, tensor] : state)
        expected[path] = a.count(path) > 0 && b.count(path) > 0 && Agree(path, a.at(path), b.at(path), by);
    }
    // One side alone has weights twice.
    std::string tied;
    const bool in_a = a.count("lm_head.weight") > 0, in_b = b.count("lm_head.weight") > 0;
    if (in_a != in_b && expected.count("model.embed.weight") > 0 && expected["model.embed.weight"]) {
      const State& own = in_a ? a : b;
      if (own.at("lm_head.weight").IsSame(own.at("model.embed.weight"))) {
        expected["lm_head.weight"] = true;
        tied = absl::StrCat("lm_head.weight, which only the ", in_a ? "reference" : "current",
                            " has, is bit for bit its model.embed.weight: they are tied");
        ++num_tied;
      }
    }
    CompareRunsOptions options;
    options.keep_results = true;
    Tolerance& tolerance = options.compare.tensors.tolerance;
    tolerance.bitwise = by == By::kBits;
    tolerance.nan_equal = by == By::kNan;
    tolerance.atol = by == By::kTolerance ? 0.5 : 0;
    const auto comparison = CompareRuns(Write("a", a), Write("b", b), options);
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    const DumpSummary& dump = comparison->dumps.at(0);
    std::map<std::string, bool> is;
    std::map<StateKind, int64_t> num_values, num_failures, num_missing, num_extra;
    for (const NamedComparison& result : dump.results.results) {
      is[result.path] = Passes(result.comparison.status);
      const StateKind kind = StateKindOf(result.path, result.path != "optimizer.state.0.step");
      ++num_values[kind];
      num_failures[kind] += !is[result.path];
      num_missing[kind] += !is[result.path] && b.count(result.path) == 0;
      num_extra[kind] += !is[result.path] && a.count(result.path) == 0;
      // The tensor that is named may be another one that differs.
      const auto found = b.find(result.path);
      if (is[result.path] || found == b.end() || found->second.shape.empty()) continue;
      if (result.comparison.status == CompareStatus::kDTypeDiffers) continue;
      std::vector<std::string> same;
      for (const auto& [other, tensor] : a) {
        if (!expected[other] && tensor.IsSame(found->second)) same.push_back(other);
      }
      const bool is_itself = std::count(same.begin(), same.end(), result.path) > 0;
      bool is_said = false;
      for (const std::string& other : same) {
        is_said = is_said || (other != result.path &&
                              result.comparison.detail.find(absl::StrCat(
                                  "it is, bit for bit, ", other, " of the reference")) != std::string::npos);
      }
      EXPECT_TRUE(is_itself || is_said == !same.empty()) << trial << " " << result.comparison.detail;
      num_explained += is_said;
    }
    EXPECT_EQ(is, expected) << trial;
    ASSERT_EQ(dump.states.size(), num_values.size());
    auto state = dump.states.begin();
    for (const auto& [kind, count] : num_values) {
      EXPECT_EQ(state->kind, kind);
      EXPECT_EQ(state->num_values, count);
      EXPECT_EQ(state->num_failures, num_failures[kind]) << trial;
      EXPECT_EQ(state->num_missing, num_missing[kind]) << trial;
      EXPECT_EQ(state->num_extra, num_extra[kind]) << trial;
      ++state;
    }
    const std::string notes = absl::StrJoin(comparison->notes, "\n");
    EXPECT_EQ(notes.find("they are tied") != std::string::npos, !tied.empty()) << trial;
    EXPECT_NE(notes.find(tied), std::string::npos) << notes;
  }
  EXPECT_GT(num_tied, 8);
  EXPECT_GT(num_explained, 8);
}

}  // namespace
}  // namespace ott::compare
