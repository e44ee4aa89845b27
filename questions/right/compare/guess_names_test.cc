// Guesses of names that were changed by a rule that is known.

#include "ott/questions/right/compare/guess_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace ott::compare {
namespace {

constexpr int kNumLayers = 12;

// A tensor of each layer: its two names, and its shape.
struct Part {
  std::string reference, current;
  Dims shape;
};

const std::vector<Part> kParts = {{"layers.{n0}.wq", "h.{n0}.attn.q", {4, 6}},
                                  {"layers.{n0}.wk", "h.{n0}.attn.k", {4, 6}},
                                  {"layers.{n0}.up", "h.{n0}.mlp", {6, 8}},
                                  {"layers.{n0}.norm", "h.{n0}.ln", {7}},
                                  {"layers.{n0}.scale", "h.{n0}.scale", {}}};

std::string Filled(const std::string& pattern, int layer) {
  return absl::StrReplaceAll(pattern, {{"{n0}", std::to_string(layer)}});
}

void InsertAtPath(const std::string& path, const Tensor& tensor, ValueMap& map) {
  const size_t dot = path.find('.');
  if (dot == path.npos) {
    map.Insert(path, tensor);
    return;
  }
  Value* child = map.Find(path.substr(0, dot));
  if (child == nullptr) child = map.Insert(path.substr(0, dot), ValueMap());
  InsertAtPath(path.substr(dot + 1), tensor, child->map());
}

// Rows by rows, or columns by columns.
Tensor Make(const std::vector<float>& elements, const Dims& shape, bool is_turned) {
  auto memory = std::make_shared<std::vector<float>>(elements);
  Dims turned = shape;
  if (is_turned) {
    std::reverse(turned.begin(), turned.end());
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) (*memory)[j * shape[0] + i] = elements[i * shape[1] + j];
    }
  }
  const TensorView view(memory->data(), absl::Span<const int64_t>(turned));
  return Tensor{view, memory};
}

// States of which each part is as it was, changed in one layer or in all, or turned.
enum State { kEqual, kChangedInOne, kChangedInAll, kTurned };

TEST(GuessNames, NamesThatWereChangedByARuleAreFound) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    ValueMap reference, current;
    std::map<std::string, std::pair<std::string, bool>> expected = {{"embedding", {"embedding", false}}},
                                                        rules;
    std::array<int, 5> counts{};  // by name, elements, transposed, names around, shape
    std::vector<State> states;
    // One pattern may be two of the reference's.
    const int moved_from = random() % 3 == 0 ? 6 : kNumLayers;
    // The current may count its layers from another number on; then each tensor has a rule.
    const int first = random() % 3 == 0 ? 3 : 0;
    // What is known of the numbers of a part, or of its layer, tells the rest.
    for (const Part& part : kParts) {
      State state = static_cast<State>(random() % 4);
      if (part.shape.size() != 2 && state == kTurned) state = kEqual;
      // Only what has a shape of its own is known by it.
      if (part.shape == kParts[0].shape && state == kChangedInAll) state = kEqual;
      if (part.shape.empty()) state = kEqual;
      if (moved_from < kNumLayers && states.empty() && state == kChangedInOne) state = kEqual;
      states.push_back(state);
    }
    for (size_t p = 0; p < kParts.size(); ++p) {
      const Part& part = kParts[p];
      for (int layer = 0; layer < kNumLayers; ++layer) {
        std::vector<float> elements(48);
        for (float& element : elements) element = static_cast<float>(random() % 100000);
        const std::string name =
            absl::StrCat(p == 0 && layer >= moved_from ? "moved." : "", Filled(part.reference, layer));
        InsertAtPath(name, Make(elements, part.shape, false), reference);
        const std::string current_name = Filled(part.current, first + layer);
        if (first > 0 || (p == 0 && moved_from < kNumLayers))
          expected[current_name] = {name, states[p] == kTurned};
        const bool is_changed = states[p] == kChangedInAll || (states[p] == kChangedInOne && layer == 5);
        if (is_changed) elements[0] += 1;
        InsertAtPath(current_name, Make(elements, part.shape, states[p] == kTurned), current);
        const bool is_like_others = is_changed && states[p] == kChangedInOne && first == 0;
        ++counts[part.shape.empty() || is_like_others ? 3 : is_changed ? 4 : states[p] == kTurned ? 2 : 1];
      }
    }
    InsertAtPath("embedding", Make({1, 2, 3}, {3}, false), reference);
    InsertAtPath("embedding", Make({4, 5, 6}, {3}, false), current);
    ++counts[0];
    // The pattern of the layers' would match it, too.
    InsertAtPath("shared.up", Make({7, 8}, {2}, false), reference);
    InsertAtPath("h.shared.mlp", Make({7, 8}, {2}, false), current);
    ++counts[1];
    expected["h.shared.mlp"] = {"shared.up", false};
    // These have no partner.
    InsertAtPath("only.reference", Make({1, 2}, {2}, false), reference);
    InsertAtPath("only.current", Make(std::vector<float>(9), {3, 3}, false), current);

    const GuessedNames guessed = GuessNames(Value(reference), Value(current));
    for (size_t p = moved_from < kNumLayers ? 1 : 0; first == 0 && p < kParts.size(); ++p)
      expected[kParts[p].current] = {kParts[p].reference, states[p] == kTurned};
    for (const TensorRule& rule : guessed.names.b().tensors())
      rules[rule.path()] = {rule.whole(), rule.transpose_size() > 0};
    EXPECT_EQ(rules, expected) << trial;
    const auto& in_order = guessed.names.b().tensors();
    EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end(), [](const auto& one, const auto& other) {
      return absl::StrContains(other.path(), "{") && !absl::StrContains(one.path(), "{");
    }));
    EXPECT_EQ(in_order.size(), expected.size()) << trial;
    const std::array<const char*, 5> means = {"name", "equal elements", "equal elements, transposed",
                                              "the names around them", "shape and order"};
    std::vector<std::string> by;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) by.push_back(absl::StrCat(counts[i], " by ", means[i]));
    }
    EXPECT_EQ(guessed.by, absl::StrJoin(by, ", ")) << trial;
  }
}

TEST(GuessNames, WhatHasNoPartnerHasNoRule) {
  EXPECT_EQ(GuessNames(Value(ValueMap()), Value(ValueMap())).by, "none");
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  for (const auto& [num_reference, num_current] : {std::pair(1, 2), {2, 1}, {2, 2}}) {
    ValueMap reference, current;
    // Any of those that are alike may be the other's; a pattern's signs are no name.
    for (const char* const name : {"a", "b"}) InsertAtPath(name, Make({1, 2}, {2}, false), reference);
    for (const char* const name : {"c", "d", "e"}) InsertAtPath(name, Make({1, 2}, {2}, false), current);
    for (int i = 0; i < num_reference; ++i)
      InsertAtPath(absl::StrCat("f", i, "f"), Make(six, {2, 3}, false), reference);
    for (int i = 0; i < num_current; ++i)
      InsertAtPath(absl::StrCat("g", i, "g"), Make(six, {2, 3}, true), current);
    InsertAtPath("x*", Make({1}, {1}, false), reference);
    InsertAtPath("x*", Make({1}, {1}, false), current);
    const GuessedNames guessed = GuessNames(Value(reference), Value(current));
    EXPECT_EQ(guessed.by, "none") << num_reference << " " << num_current;
    EXPECT_EQ(guessed.names.b().tensors_size(), 0);
  }
  // Elements do not tell which is which of two that are alike on both sides.
  ValueMap reference, current;
  for (const char* const name : {"a", "b"}) InsertAtPath(name, Make(six, {6}, false), reference);
  for (const char* const name : {"c", "d"}) InsertAtPath(name, Make(six, {6}, false), current);
  EXPECT_EQ(GuessNames(Value(reference), Value(current)).by, "2 by shape and order");
}

}  // namespace
}  // namespace ott::compare
