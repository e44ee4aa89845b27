#include "ott/core/checkpoint/zero.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checkpoint/checkpoint_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/dump/json_writer.h"

namespace ott {
namespace {

using testing::HasSubstr;

Value FlatOf(const std::vector<float>& elements) {
  const auto size = static_cast<int64_t>(elements.size());
  const std::shared_ptr<void> memory = *AllocateHost(4 * size);
  std::copy(elements.begin(), elements.end(), static_cast<float*>(memory.get()));
  return Tensor{TensorView(memory.get(), DType::kFloat32, {size}), memory};
}

// DeepSpeed's engine wrote the files (testdata/make_zero_testdata.py), and its zero_to_fp32 merged them.
TEST(Zero, TheMasterWeightsAreThoseThatDeepSpeedMerges) {
  for (const char* const name : {"zero_2", "zero_3"}) {
    const Value zero = Read(Data(name));
    const Value merged = Read(Data(absl::StrCat(name, "_merged.pt")));
    EXPECT_EQ(ListTensors(merged).size(), 12);
    int num_trained = 0;
    for (const auto& [parameter, expected] : merged.map()) {
      const Value* const kept = At(At(zero, "optimizer"), "state").map().Find(parameter);
      if (kept == nullptr) continue;
      ++num_trained;
      EXPECT_EQ(Elements(At(*kept, "fp32")), Elements(expected)) << name << " " << parameter;
      EXPECT_EQ(At(*kept, "exp_avg").tensor().view.shape(), expected.tensor().view.shape());
    }
    EXPECT_EQ(num_trained, 8) << "two are frozen, one is tied, one is a buffer";
  }
  EXPECT_EQ(AllElements(At(Read(Data("zero_3")), "module")), AllElements(Read(Data("zero_3_merged.pt"))));
  // One file is the state where there are no partitions.
  EXPECT_EQ(At(At(Read(Data("zero_0")), "optimizer"), "state").map().size(), 8);
}

// Draws a tree of depth at most 3.
Value DrawState(std::mt19937& random, int depth) {
  const auto number = static_cast<int>(random() % 3);
  switch (random() % (depth < 2 ? 7 : 4)) {
    case 0:
      return number;
    case 1:
      return number == 0 ? std::nan("") : number + 0.5;
    case 2:
      return absl::StrCat("text", number);
    case 3:
      return number == 0 ? Value() : FlatOf(std::vector<float>(1 + random() % 2, 1));
    case 4: {
      Value::List list;
      for (int i = 0; i < number; ++i) list.push_back(DrawState(random, depth + 1));
      return list;
    }
    default: {
      ValueMap map;
      for (const char* const name : {"a", "b", "c"})
        if (random() % 3 > 0) map.Insert(name, DrawState(random, depth + 1));
      return map;
    }
  }
}

std::string JsonOf(const Value& value) { return *ToJson(value); }

// Returns the entries of `other` that differ from those of `first`. Only maps are compared entry by entry.
std::optional<Value> Difference(const Value& first, const Value& other) {
  if (!first.is_map() || !other.is_map())
    return JsonOf(first) == JsonOf(other) ? std::nullopt : std::optional<Value>(other);
  ValueMap map;
  for (const auto& [name, child] : other.map()) {
    const Value* const known = first.map().Find(name);
    const std::optional<Value> difference = known == nullptr ? child : Difference(*known, child);
    if (difference.has_value()) map.Insert(name, *difference);
  }
  for (const auto& [name, child] : first.map())
    if (other.map().Find(name) == nullptr) map.Insert(name, Value());
  return map.empty() ? std::nullopt : std::optional<Value>(map);
}

TEST(Zero, AFileThatIsMissingIsNamed) {
  const std::string dir = testing::TempDir() + "/zero_cut";
  const std::string optimizer = "_mp_rank_00_optim_states.pt", model = "_mp_rank_00_model_states.pt";
  for (const auto& [stage, name, message] : std::vector<std::tuple<int, std::string, std::string>>{
           {2, "bf16_zero_pp_rank_0" + optimizer, "has no ZeRO partition of rank 0"},
           {2, "mp_rank_00_model_states.pt", "has no mp_rank_00_model_states.pt"},
           {3, "zero_pp_rank_0" + optimizer, "has no ZeRO partition of rank 0"},
           {3, "zero_pp_rank_1" + optimizer, "has 2 ZeRO models, but 1 partitions"},
           {3, "zero_pp_rank_0" + model, "has no ZeRO model of rank 0"}}) {
    std::filesystem::copy(Data(absl::StrCat("zero_", stage, "/global_step2")), dir);
    EXPECT_TRUE(std::filesystem::remove(absl::StrCat(dir, "/", name))) << name;
    EXPECT_THAT(std::string(ReadCheckpoint(dir).status().message()), HasSubstr(message));
    std::filesystem::remove_all(dir);
  }
}

TEST(Zero, OfAnyStageAndRanksTheStateIsWhatWasSplitAndWhatALaterRankHoldsOtherwiseIsKept) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t end) { return static_cast<int64_t>(random() % end); };
    const bool is_stage_3 = below(3) == 0, is_elastic = !is_stage_3 && below(2) == 0;
    const int64_t num_ranks = 1 + below(4), num_groups = 1 + below(2), elements_of_rank = 1 + below(9);
    // The flat buffers of ranks: equal ones with padding, but in elastic checkpoints.
    const auto split = [&](const std::vector<int64_t>& sizes, float next) {
      std::vector<std::vector<float>> of_rank(static_cast<size_t>(num_ranks));
      const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
      for (const int64_t size : is_stage_3 ? sizes : std::vector<int64_t>{all}) {
        const int64_t share = (size + num_ranks - 1) / num_ranks;
        for (int64_t i = 0; i < (is_elastic ? size : share * num_ranks); ++i) {
          const int64_t rank = i / (is_elastic ? elements_of_rank : share);
          of_rank[static_cast<size_t>(std::min(rank, num_ranks - 1))].push_back(i < size ? next++ : -1);
        }
      }
      return of_rank;
    };
    Value::List shapes;
    std::map<std::string, std::string> expected, found;
    std::vector<std::vector<std::vector<float>>> masters, moments;  // by group and rank
    for (int64_t group = 0; group < num_groups; ++group) {
      ValueMap of_group;
      Value::List names;
      std::vector<int64_t> sizes;
      float next = 0;
      for (int64_t i = below(4); i >= 0; --i) {
        names.push_back(absl::StrCat("p", group, i));
        Dims shape(random() % 3);
        for (int64_t& extent : shape) extent = below(4);
        of_group.Insert(names.back().string_value(), Value::List(shape.begin(), shape.end()));
        sizes.push_back(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
        const std::string name = names.back().string_value(), form = ShapeToString(shape);
        for (const float first : {0, 1000}) {
          std::string& text = expected[name + (first == 0 ? ".fp32" : ".exp_avg")];
          text = absl::StrCat("float32", form, ":");
          for (int64_t k = 0; k < sizes.back(); ++k) absl::StrAppend(&text, " ", first + next + k);
        }
        if (is_stage_3) expected["module." + name] = expected[name + ".fp32"];
        next += static_cast<float>(sizes.back());
      }
      if (!is_elastic) expected[absl::StrCat("params", group)] = JsonOf(names);
      shapes.push_back(std::move(of_group));
      masters.push_back(split(sizes, 0));
      moments.push_back(split(sizes, 1000));
    }
    // Stage 3 splits what is frozen, too, and the first rank alone knows what is tied.
    const Dims frozen_shape(below(3), below(3));
    const int64_t num_frozen =
        std::accumulate(frozen_shape.begin(), frozen_shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<float> frozen(static_cast<size_t>((num_frozen + num_ranks - 1) / num_ranks * num_ranks), -1);
    std::iota(frozen.begin(), frozen.begin() + num_frozen, 2000);
    const size_t frozen_share = frozen.size() / static_cast<size_t>(num_ranks);
    const Value buffer = FlatOf({7, 8}), empty = FlatOf({});
    for (const char* const name : {"buffer", "frozen", "tied"})
      expected[absl::StrCat("module.", name)] = Elements(*name == 'b' ? buffer : empty);
    const bool has_frozen = below(2) == 0;
    if (is_stage_3 && has_frozen) {
      std::string& text = expected["module.frozen"] =
          absl::StrCat("float32", ShapeToString(frozen_shape), ":");
      for (int64_t i = 0; i < num_frozen; ++i) absl::StrAppend(&text, " ", 2000 + i);
    }
    if (is_stage_3) expected["module.tied"] = expected["p00.fp32"];
    std::vector<Value> models, partitions, states, others;
    for (size_t rank = 0; rank < static_cast<size_t>(num_ranks); ++rank) {
      Value::List flat, groups, list;
      ValueMap by_group, other;
      const int64_t lr = below(2);
      for (size_t group = 0; group < masters.size(); ++group) {
        flat.push_back(FlatOf(masters[group][rank]));
        ValueMap kept{{"exp_avg", FlatOf(moments[group][rank])}};
        // A rank may lack what others have.
        if (below(4) > 0)
          kept.Insert("step", *other.Insert(absl::StrCat("state.", group, ".step"), below(2)));
        list.push_back(kept);
        by_group.Insert(absl::StrCat(group), std::move(kept));
        groups.push_back(ValueMap{{"lr", lr}, {"params", Value::List{0}}});
      }
      if (!is_elastic) other.Insert("param_groups", groups);
      others.push_back(other);
      states.push_back(below(2) == 0 && rank > 0 ? states[0] : DrawState(random, 0));
      const auto share = frozen.begin() + static_cast<std::ptrdiff_t>(rank * frozen_share);
      const Value part = FlatOf({share, share + static_cast<std::ptrdiff_t>(frozen_share)});
      ValueMap model{{"module", ValueMap{{"buffer", buffer}, {"frozen", empty}, {"tied", empty}}},
                     {"param_shapes", shapes},
                     {"x", states.back()},
                     {"frozen_param_fragments", ValueMap{{"frozen", part}}}};
      if (rank == 0) {
        const ValueMap shape{{"frozen", Value::List(frozen_shape.begin(), frozen_shape.end())}};
        if (has_frozen) model.Insert("frozen_param_shapes", shape);
        model.Insert("shared_params", ValueMap{{"tied", "p00"}});
      }
      models.push_back(std::move(model));
      const Value base = ValueMap{{"state", by_group}, {"param_groups", groups}};
      partitions.push_back(
          ValueMap{{"optimizer_state_dict",
                    ValueMap{{is_stage_3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups", flat},
                             {is_stage_3 ? "optimizer_state_dict" : "base_optimizer_state",
                              is_elastic ? list : base}}}});
    }
    const Value joined = JoinZeroPartitions(models, partitions).value();
    for (const auto& [name, kept] : At(At(joined, "optimizer"), "state").map()) {
      for (const char* const of : {"fp32", "exp_avg"}) found[name + "." + of] = Elements(At(kept, of));
      const Value* const step = kept.map().Find("step");
      const Value* const of_first = others[0].map().Find("state." + name.substr(1, 1) + ".step");
      EXPECT_EQ(step == nullptr ? "none" : JsonOf(*step), of_first == nullptr ? "none" : JsonOf(*of_first));
    }
    for (const auto& [name, weight] : At(joined, "module").map()) found["module." + name] = Elements(weight);
    for (int64_t group = 0; !is_elastic && group < num_groups; ++group) {
      const Value& groups = At(At(joined, "optimizer"), "param_groups");
      found[absl::StrCat("params", group)] = JsonOf(At(groups.list()[static_cast<size_t>(group)], "params"));
    }
    EXPECT_EQ(found, expected);
    for (size_t rank = 1; rank < partitions.size(); ++rank) {
      ValueMap other;
      if (const auto of_model = Difference(states[0], states[rank])) other.Insert("x", *of_model);
      if (const auto of_optimizer = Difference(others[0], others[rank]))
        other.Insert("optimizer_state_dict", *of_optimizer);
      const Value* const kept = joined.map().Find(absl::StrCat("rank_", rank));
      EXPECT_EQ(kept == nullptr ? "none" : JsonOf(*kept), other.empty() ? "none" : JsonOf(other)) << rank;
    }
  }
}

// Two ranks have a parameter of stage 3.
TEST(Zero, WhatHasAnotherFormThanDeepSpeedsStaysAsItIs) {
  const ValueMap good{{"0", ValueMap{{"m", FlatOf({5})}}}};
  const auto join = [](ValueMap model, const Value& groups, const Value& state, const Value& of_second) {
    model.Insert("param_shapes", Value::List{ValueMap{{"a", Value::List{2}}}});
    model.Insert("shared_params", ValueMap{{"b", 3}});
    std::vector<Value> partitions;
    for (const Value& kept : {state, of_second}) {
      const ValueMap own{{"fp32_flat_groups", Value::List{FlatOf({1})}},
                         {"optimizer_state_dict", ValueMap{{"state", kept}, {"param_groups", groups}}}};
      partitions.push_back(ValueMap{{"optimizer_state_dict", own}});
    }
    return JoinZeroPartitions({model}, partitions).value();
  };
  EXPECT_EQ(join({}, 3, good, good).map().Find("module"), nullptr);
  const Value module = At(join({{"module", ValueMap{{"b", 5}}}}, 3, good, good), "module");
  EXPECT_EQ(At(module, "b").int_value(), 5);
  EXPECT_EQ(Elements(At(module, "a")), "float32[2]: 1 1");
  const ValueMap other{{"lr", 1}};
  for (const Value& groups : {Value(3), Value(Value::List()), Value(Value::List{7}),
                              Value(Value::List{other, ValueMap{{"params", 5}}})})
    EXPECT_EQ(JsonOf(At(At(join({}, groups, good, good), "optimizer"), "param_groups")), JsonOf(groups));
  // A rank that lacks what another one keeps, or has something else.
  for (const Value& lacking : {Value(), Value(ValueMap()), Value(ValueMap{{"0", 3}})}) {
    EXPECT_EQ(Elements(At(At(At(At(join({}, 3, good, lacking), "optimizer"), "state"), "a"), "m")),
              "float32[1]: 5");
    const Value of_second = At(At(join({}, 3, lacking, good), "rank_1"), "optimizer_state_dict");
    EXPECT_EQ(Elements(At(of_second, "state.0.m")), "float32[1]: 5");
  }
}

TEST(Zero, PartsThatAreMissingAreNamed) {
  const Value shapes = Value::List{ValueMap{{"a", Value::List{2, 2}}, {"b", Value::List{3}}}};
  const Value model = ValueMap{{"param_shapes", shapes}};
  const auto partition = [](size_t size, const Value& kept) {
    return ValueMap{{"optimizer_state_dict", ValueMap{{"single_partition_of_fp32_groups",
                                                       Value::List{FlatOf(std::vector<float>(size))}},
                                                      {"base_optimizer_state", kept}}}};
  };
  const auto of_shapes = [](const Value& other) { return ValueMap{{"param_shapes", other}}; };
  const Value good = partition(7, ValueMap());
  const auto of_masters = [](const Value& other) {
    return ValueMap{{"optimizer_state_dict", ValueMap{{"single_partition_of_fp32_groups", other}}}};
  };
  const Value frozen = ValueMap{{"param_shapes", Value::List()},
                                {"module", ValueMap()},
                                {"frozen_param_shapes", ValueMap{{"f", Value::List{2}}}}};
  const std::string prefix = "ZeRO's partitions have ", no_masters = "no flat master weights of group 0";
  const std::string no_files = prefix + "no files of the optimizer",
                    no_kept = prefix + "no map of what the optimizer keeps of group 0";
  EXPECT_EQ(JoinZeroPartitions({model}, {good}).status(), absl::OkStatus());
  for (const auto& [models, partitions, message] :
       std::vector<std::tuple<std::vector<Value>, std::vector<Value>, std::string>>{
           {{model}, {partition(4, ValueMap())}, "'b': its parts have 0 of 3 elements"},
           {{model}, {partition(7, Value::List{})}, no_kept},
           {{model}, {partition(7, Value::List{3})}, no_kept},
           {{}, {good}, no_files},
           {{model}, {}, no_files},
           {{model, 3}, {good}, prefix + "a file of the model that is no map"},
           {{ValueMap()}, {good}, prefix + "no param_shapes"},
           {{of_shapes(3)}, {good}, prefix + "no param_shapes"},
           {{of_shapes(Value::List{3})}, {good}, prefix + "param_shapes that are no maps"},
           {{of_shapes(Value::List{ValueMap{{"a", 3}}})}, {good}, prefix + "no shape of 'a'"},
           {{of_shapes(Value::List{ValueMap{{"a", Value::List{"x"}}}})}, {good}, prefix + "no shape of 'a'"},
           {{model}, {good, ValueMap()}, prefix + "no optimizer_state_dict"},
           {{model}, {ValueMap{{"optimizer_state_dict", 3}}}, prefix + "no optimizer_state_dict"},
           {{model}, {good, of_masters(Value())}, no_masters},
           {{model}, {ValueMap{{"optimizer_state_dict", ValueMap()}}}, no_masters},
           {{frozen},
            {ValueMap{{"optimizer_state_dict", ValueMap{{"fp32_flat_groups", Value::List()}}}}},
            prefix + "no fragments of 'f'"},
           {{model}, {good, of_masters(3)}, no_masters},
           {{model}, {good, of_masters(Value::List())}, no_masters}}) {
    EXPECT_THAT(std::string(JoinZeroPartitions(models, partitions).status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace ott
