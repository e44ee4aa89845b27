// Makes names agree that were made to differ by rules that are known.

#include "ott/questions/right/compare/checkpoint_names.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/checkpoint/checkpoint.h"

namespace ott::compare {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

const float kNumbers[] = {1, 2, 3, 4};

// Returns the elements, or the text, of each path.
std::map<std::string, std::string> PathsOf(const Value& state) {
  std::map<std::string, std::string> paths;
  for (const NamedTensor& value : ListValues(state)) {
    const TensorView& view = value.tensor.view;
    paths[value.path] = value.content == NamedTensor::Content::kText
                            ? value.digest
                            : std::string(static_cast<const char*>(view.data()), view.num_bytes());
  }
  return paths;
}

// Says how a side writes the state: its names at the top, the prefix of its weights, and what its optimizer
// goes by.
struct Side {
  std::string model, prefix, optimizer, scheduler;
  bool is_list = false, by_number = false;

  Value Make(const std::vector<std::vector<std::string>>& groups) const {
    ValueMap weights, state;
    Value::List param_groups;
    int number = 0;
    for (const std::vector<std::string>& names : groups) {
      Value::List params;
      for (const std::string& name : names) {
        weights.Insert(prefix + name, TensorView(&kNumbers[number % 4], {1}));
        const std::string key = by_number ? std::to_string(number) : name;
        state.Insert(key, ValueMap{{"exp_avg", TensorView(&kNumbers[(number + 1) % 4], {1})}});
        params.push_back(by_number ? Value(number) : Value(name));
        ++number;
      }
      param_groups.push_back(ValueMap{{"lr", 0.5}, {"params", std::move(params)}});
    }
    if (model.empty()) return weights;
    const Value whole = ValueMap{{"state", std::move(state)}, {"param_groups", std::move(param_groups)}};
    return ValueMap{{model, std::move(weights)},
                    {optimizer, is_list ? Value(Value::List{whole}) : whole},
                    {scheduler, ValueMap{{"last_epoch", 3}}},
                    {"epoch", 3}};
  }
};

TEST(AlignNames, SidesThatSayTheSameInOtherNamesAgree) {
  std::mt19937 random(1);
  const auto any = [&](const std::vector<std::string>& names) { return names[random() % names.size()]; };
  for (int trial = 0; trial < 300; ++trial) {
    Side sides[2];
    std::vector<std::string> notes;
    const bool has_model_alone = trial % 4 == 0;
    const int prefixed = static_cast<int>(random() % 3), numbered = static_cast<int>(random() % 3);
    for (int i = 0; i < 2; ++i) {
      sides[i] = {any({"model", "state_dict", "model_state_dict", "module", "net", "network", "weights",
                       "model_state"}),
                  "",
                  any({"optimizer", "optimizer_state_dict", "optimizer_states", "optim", "optimizer_state"}),
                  any({"scheduler", "lr_scheduler", "lr_schedulers", "scheduler_state_dict",
                       "lr_scheduler_state_dict", "opt_param_scheduler"})};
      if (prefixed == i) sides[i].prefix = any({"module.", "_orig_mod.", "_forward_module.", "model."});
      sides[i].by_number = numbered == i;
      if (has_model_alone) sides[i].model.clear();
    }
    // Names that agree stay, also where they are not ours.
    if (trial % 4 == 1) {
      sides[1].model = sides[0].model;
      sides[1].optimizer = sides[0].optimizer;
      sides[1].scheduler = sides[0].scheduler;
    }
    const bool agree = sides[0].model == sides[1].model && sides[0].optimizer == sides[1].optimizer &&
                       sides[0].scheduler == sides[1].scheduler;
    for (int i = 0; i < 2; ++i) {
      // A list of one, as Lightning has it.
      sides[i].is_list = !agree && sides[i].optimizer == "optimizer_states";
      const char* const side = i == 0 ? "reference" : "current";
      if (prefixed == i) {
        notes.push_back(
            absl::StrCat(sides[i].prefix, " was left out of the names of the weights of the ", side));
      }
      if (has_model_alone) continue;
      for (const auto& [name, ours] : {std::pair(sides[i].model, "model"),
                                       {sides[i].optimizer, "optimizer"},
                                       {sides[i].scheduler, "scheduler"}}) {
        const bool is_list = name == "optimizer_states";
        if (name != ours && !agree)
          notes.push_back(absl::StrCat(name, is_list ? ".0" : "", " of the ", side, " was taken for ", ours));
      }
      if (numbered == i) {
        notes.push_back(absl::StrCat("the numbers in the optimizer of the ", side,
                                     " were taken for the names at "
                                     "the same places of the other's param_groups"));
      }
    }
    const std::vector<std::vector<std::string>> groups = {{"a.weight", "b.weight"}, {"a.bias"}};
    Value reference = sides[0].Make(groups), current = sides[1].Make(groups);
    std::vector<std::string> said;
    AlignNames(&reference, &current, &said);
    EXPECT_EQ(PathsOf(reference), PathsOf(current)) << trial;
    EXPECT_THAT(said, UnorderedElementsAreArray(notes)) << trial;
  }
}

TEST(AlignNames, WhatCannotBeToldApartStaysAsItIs) {
  const std::vector<std::vector<std::string>> groups = {{"a", "b"}, {"c"}}, others = {{"a"}, {"b", "c"}};
  // Groups have other sizes.
  Value reference = Side{"model", "", "optimizer", "scheduler", false, true}.Make(groups),
        current = Side{"model", "", "optimizer", "scheduler"}.Make(others);
  const auto before = PathsOf(reference);
  std::vector<std::string> said;
  AlignNames(&reference, &current, &said);
  EXPECT_THAT(said, ElementsAre(HasSubstr("their groups are of other sizes")));
  EXPECT_EQ(PathsOf(reference), before);
  // Two names of one thing; and a prefix that makes no more names agree.
  const Value weights = ValueMap{{"module.a", TensorView(kNumbers, {1})}};
  Value two = ValueMap{{"state_dict", weights}, {"model", weights}},
        one = ValueMap{{"net", ValueMap{{"x", TensorView(kNumbers, {1})}}}};
  said.clear();
  AlignNames(&two, &one, &said);
  EXPECT_THAT(said, ElementsAre("net of the current was taken for model"));
  EXPECT_NE(two.map().Find("state_dict"), nullptr);
  EXPECT_NE(two.map().Find("model")->map().Find("module.a"), nullptr);
  // A whole side is the model of the other, unless it has one.
  Value alone = ValueMap{{"a", TensorView(kNumbers, {1})}}, within = ValueMap{{"net", alone}, {"b", alone}};
  said.clear();
  AlignNames(&alone, &within, &said);
  EXPECT_THAT(said, ElementsAre("all of the reference was taken for model",
                                "net of the current was taken for model"));
  Value beside = ValueMap{{"a", TensorView(kNumbers, {1})}, {"model", within}},
        other = ValueMap{{"net", within}};
  said.clear();
  AlignNames(&beside, &other, &said);
  EXPECT_THAT(said, ElementsAre("net of the current was taken for model"));
}

TEST(AlignNames, OptimizersThatAreNoneOrTwoStayAsTheyAre) {
  const auto with_groups = [](Value groups) { return ValueMap{{"param_groups", std::move(groups)}}; };
  const Value numbered = Value::List{ValueMap{{"params", Value::List{0}}}};
  for (const Value& odd :
       {Value(Value::List{ValueMap{{"a", 1}}, ValueMap{{"b", 2}}}), Value(with_groups(3)),
        Value(with_groups(Value::List{3})), Value(with_groups(Value::List{ValueMap{{"params", 3}}})),
        Value(with_groups(numbered)), Value(ValueMap{{"param_groups", numbered}, {"state", 3}})}) {
    for (const bool is_numbered : {false, true}) {
      Value whole = Side{"model", "", "optimizer", "scheduler", false, is_numbered}.Make({{"a"}}),
            other = ValueMap{{"optimizer_states", odd}};
      std::vector<std::string> said;
      AlignNames(&whole, &other, &said);
      AlignNames(&other, &whole, &said);
      EXPECT_EQ(PathsOf(*other.map().Find("optimizer")), PathsOf(odd));
    }
  }
}

// torch.compile() around DistributedDataParallel makes such names.
TEST(AlignNames, WrappersWithinWrappersAreLeftOutOfStatesOfOneProgram) {
  const auto state = [](const std::string& prefix) {
    return Value(ValueMap{{"model", ValueMap{{prefix + "a", TensorView(kNumbers, {1})},
                                             {prefix + "b", TensorView(kNumbers, {2})}}},
                          {"epoch", 3}});
  };
  Value plain = state(""), twice = state("_orig_mod.module."), once = state("module.");
  const auto said_of = [](Value reference, Value current) {
    std::vector<std::string> said;
    AlignNames(&reference, &current, &said);
    EXPECT_EQ(PathsOf(reference), PathsOf(current));
    return said;
  };
  EXPECT_THAT(said_of(plain, twice),
              ElementsAre("_orig_mod.module. was left out of the names of the weights of the current"));
  EXPECT_THAT(said_of(twice, once),
              ElementsAre("_orig_mod. was left out of the names of the weights of the reference"));
  EXPECT_THAT(said_of(once, once), ElementsAre());
}

}  // namespace
}  // namespace ott::compare
