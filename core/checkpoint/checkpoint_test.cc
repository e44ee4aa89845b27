// Reads what PyTorch 2.13, NumPy and safetensors wrote (testdata/make_testdata.py), and what nobody should.

#include "ott/core/checkpoint/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
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
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/checkpoint/state_kind.h"
#include "ott/core/checkpoint/torch_objects.h"
#include "ott/core/checkpoint/zero.h"
#include "ott/core/checkpoint/zip_archive.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

std::string Data(const std::string& name) { return "core/checkpoint/testdata/" + name; }

Value Read(const std::string& path) {
  absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? std::move(checkpoint->state) : Value(ValueMap());
}

const Value& At(const Value& tree, const std::string& name) {
  static const Value& none = *new Value();
  const Value* const found = tree.is_map() ? tree.map().Find(name) : nullptr;
  EXPECT_NE(found, nullptr) << name;
  return found == nullptr ? none : *found;
}

// Each element as a text, in row-major order.
std::string Elements(const Value& value) {
  const Tensor tensor = *CloneToHost(Gathered(value.tensor())->view);
  std::string text(Name(tensor.view.dtype()));
  absl::StrAppend(&text, ShapeToString(tensor.view.shape()), ":");
  VisitDType(tensor.view.dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (!kIsComplex<T>) {
      for (int64_t i = 0; i < tensor.view.num_elements(); ++i) {
        absl::StrAppend(&text, " ", static_cast<double>(static_cast<const T*>(tensor.view.data())[i]));
      }
    }
  });
  return text;
}

// All tensors of a tree, by path.
std::map<std::string, std::string> AllElements(const Value& tree) {
  std::map<std::string, std::string> all;
  for (const NamedTensor& named : ListTensors(tree)) all[named.path] = Elements(Value(named.tensor));
  return all;
}

TEST(Checkpoint, FormatsOfOneModelHoldTheSameTensors) {
  const std::map<std::string, std::string> expected = AllElements(Read(Data("weights.pt")));
  EXPECT_EQ(expected.size(), 6);
  EXPECT_THAT(expected.at("0.weight"), HasSubstr("float32[3, 4]: "));
  for (const char* const name : {"weights.safetensors", "weights.npz", "weights_compressed.npz",
                                 "sharded/model.safetensors.index.json"}) {
    EXPECT_EQ(AllElements(Read(Data(name))), expected) << name;
  }
  EXPECT_EQ(AllElements(At(Read(Data("whole.pt")), "model")), expected);
  EXPECT_EQ(AllElements(At(Read(Data("sharded")), "model")), expected);
}

TEST(Checkpoint, ADistributedCheckpointIsTheStateThatWasSavedByAnyNumberOfRanks) {
  const Value whole = Read(Data("whole.pt"));
  for (const char* const name : {"dcp_1", "dcp_2"}) {
    const Value distributed = Read(Data(name));
    EXPECT_EQ(AllElements(distributed), AllElements(whole)) << name;
    EXPECT_EQ(At(distributed, "epoch").int_value(), 2);
    EXPECT_EQ(At(At(distributed, "optimizer"), "param_groups").list().size(), 1);
  }
  EXPECT_NE(At(At(Read(Data("dcp_2")), "model"), "0.weight").tensor().scattered, nullptr);
}

// A parameter of 8 elements at 128, and 56 of padding, which Megatron took from memory that it did not set.
TEST(Checkpoint, PaddingOfMegatronsBucketsIsZero) {
  const std::string dir = testing::TempDir() + "/padding";
  std::filesystem::copy(Data("megatron_buckets"), dir);
  std::string metadata = *ReadFile(dir + "/.metadata");
  for (int time = 0; time < 2; ++time) {
    int num_buckets = 0;
    for (const NamedTensor& named : ListTensors(Read(dir))) {
      if (named.path.find("bucket_idx_0.param") == named.path.npos) continue;
      ++num_buckets;
      const Tensor gathered = *Gathered(named.tensor);
      const float* const elements = static_cast<const float*>(gathered.view.data());
      EXPECT_EQ(std::count(elements + 128, elements + 136, 0), 0);
      EXPECT_EQ(std::count(elements + 136, elements + 192, 0), 56);
      // Padding has fewer elements.
      EXPECT_EQ(std::count(elements + 576, elements + 648, 0), 0);
    }
    EXPECT_EQ(num_buckets, 1);
    // The 64 elements at 576 change places with the 8 behind them.
    for (const auto& [from, to] : {std::pair("M\x40\x02", "M\x48\x02"), {"M\x80\x02", "M\x40\x02"}})
      absl::StrReplaceAll({{from, to}}, &metadata);
    ASSERT_TRUE(WriteFileAtomically(dir + "/.metadata", metadata).ok());
  }
  std::filesystem::remove_all(dir);
}

TEST(Checkpoint, FilesBesidePartsThatBelongTogetherAreReadToo) {
  const std::string dir = testing::TempDir() + "/beside";
  std::filesystem::create_directories(dir);
  for (const char* const parts : {"dcp_2", "zero_2"}) {
    std::filesystem::copy(Data(parts), absl::StrCat(dir, "/", parts),
                          std::filesystem::copy_options::recursive);
    std::filesystem::copy_file(Data("plain.pkl"), absl::StrCat(dir, "/", parts, "/rng_state_0.pth"));
    EXPECT_EQ(At(At(Read(absl::StrCat(dir, "/", parts)), "rng_state_0"), "step").int_value(), 3) << parts;
  }
  std::filesystem::remove_all(dir);
}

TEST(Checkpoint, ALinkMustNotLeadOutOfTheFolder) {
  const std::string dir = testing::TempDir() + "/links";
  const std::string snapshot = dir + "/hub/snapshots/0123";
  for (const std::string& folder : {dir + "/in", dir + "/hub/blobs", snapshot})
    std::filesystem::create_directories(folder);
  std::filesystem::copy_file(Data("weights.pt"), dir + "/secret.pt");
  std::filesystem::copy_file(Data("weights.pt"), dir + "/in/weights.pt");
  std::filesystem::copy_file(Data("weights.pt"), dir + "/hub/blobs/89ab");
  // Names that are the same in a state, too.
  std::filesystem::create_symlink("weights.pt", dir + "/in/weights.bin");
  EXPECT_EQ(Read(dir + "/in").map().size(), 2);
  // Hugging Face's cache links from its snapshots to its blobs.
  std::filesystem::create_symlink("../../blobs/89ab", snapshot + "/model.pt");
  EXPECT_EQ(Read(snapshot).map().size(), 1);
  for (const char* const target : {"../secret.pt", "../../links"}) {
    std::filesystem::create_symlink(target, dir + "/in/out.pt");
    EXPECT_THAT(ReadCheckpoint(dir + "/in").status().message(),
                testing::AllOf(HasSubstr("links/in/out.pt: is a link to "),
                               HasSubstr("which leads out of the folder")));
    std::filesystem::remove(dir + "/in/out.pt");
  }
  std::filesystem::create_symlink("../secret.pt", dir + "/in/shard.safetensors");
  ASSERT_TRUE(
      WriteFileAtomically(dir + "/in/m.index.json", R"({"weight_map": {"0.weight": "shard.safetensors"}})")
          .ok());
  EXPECT_THAT(ReadCheckpoint(dir + "/in/m.index.json").status().message(),
              HasSubstr("which leads out of the folder"));
  std::filesystem::remove_all(dir);
}

TEST(Checkpoint, FoldersOfNumberedCheckpointsAreListed) {
  const std::string dir = testing::TempDir() + "/numbered";
  for (const char* const name : {"checkpoint-100", "global_step20", "iter_0000300", "other_7", "epoch"}) {
    std::filesystem::create_directories(absl::StrCat(dir, "/", name));
    std::filesystem::copy_file(Data("plain.pkl"), absl::StrCat(dir, "/", name, "/state.pkl"));
  }
  for (const char* const name :
       {"epoch=3-step=40.ckpt", "step_50.pt", "model-00001-of-00002.pt", "step_60.log", "rng_state_0.pth",
        "model_state_0.pt", "model_state_1.pt", "optim_state_1.pt"}) {
    std::filesystem::copy_file(Data("weights.pt"), absl::StrCat(dir, "/", name));
  }
  const std::map<int64_t, std::string> expected = {{20, dir + "/global_step20"},
                                                   {40, dir + "/epoch=3-step=40.ckpt"},
                                                   {50, dir + "/step_50.pt"},
                                                   {100, dir + "/checkpoint-100"},
                                                   {300, dir + "/iter_0000300"}};
  EXPECT_EQ(ListCheckpoints(dir), expected);
  std::filesystem::copy_file(Data("weights.pt"), dir + "/step_100.pt");
  EXPECT_THAT(ListCheckpoints(dir), testing::IsEmpty()) << "two of iteration 100";
  std::filesystem::remove_all(dir);
}

TEST(Checkpoint, NoBytesAreBytesInEachProtocol) {
  // pickle.dumps({"a": b""}, 2); later ones have an opcode for it.
  constexpr char kPickle[] = "\x80\2}q\0X\1\0\0\0aq\1c__builtin__\nbytes\nq\2)Rq\3s.";
  const std::string path = testing::TempDir() + "/no_bytes.pkl";
  ASSERT_TRUE(WriteFileAtomically(path, std::string(kPickle, sizeof(kPickle) - 1)).ok());
  EXPECT_EQ(Elements(At(Read(path), "a")), "uint8[0]:");
}

TEST(Checkpoint, TorchScriptHasTheParametersOfEachModule) {
  const Value script = Read(Data("script.pt"));
  EXPECT_EQ(Elements(At(script, "1.weight")), Elements(At(Read(Data("weights.pt")), "1.weight")));
}

TEST(Checkpoint, BothFormatsOfTorchSaveHoldTheSameState) {
  const Value whole = Read(Data("whole.pt"));
  EXPECT_EQ(AllElements(whole), AllElements(Read(Data("whole_legacy.pt"))));
  const Value& moments = At(At(At(whole, "optimizer"), "state"), "0");
  EXPECT_EQ(Elements(At(moments, "step")), "float32[]: 2");
  EXPECT_EQ(At(At(whole, "optimizer"), "param_groups").list().size(), 1);
  EXPECT_EQ(At(whole, "epoch").int_value(), 2);
  // numpy.random.get_state() is a name, 624 numbers and their position.
  EXPECT_THAT(Elements(At(At(whole, "rng_state"), "numpy").list()[1]), HasSubstr("uint32[624]: "));
}

TEST(Checkpoint, ValuesAreThoseThatWereSaved) {
  const Value values = Read(Data("values.pt"));
  const std::map<std::string, std::string> expected = {
      {"transposed", "float32[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11"},
      {"slice", "float32[3]: 2 3 4"},
      {"expanded", "float32[5]: 0 0 0 0 0"},
      {"scalar", "int64[]: 7"},
      {"empty", "float32[0, 3]:"},
      {"bfloat16", "bfloat16[12]: 0 1 2 3 4 5 6 7 8 9 10 11"},
      {"float8", "float8_e4m3fn[12]: 0 1 2 3 4 5 6 7 8 9 10 11"},
      {"uint16", "uint16[2]: 1 65535"},
      {"complex", "complex64[1]:"},
      {"bool", "bool[2]: 1 0"},
      {"parameter", "float32[2]: 0 1"},
      {"numpy", "int32[2, 3]: 0 2 4 1 3 5"},
      {"numpy_scalar", "float64[]: 2.5"},
  };
  for (const auto& [name, text] : expected) EXPECT_EQ(Elements(At(values, name)), text) << name;
  for (const char* const plain : {"uint16", "float8", "slice"})
    EXPECT_EQ(values.map().Find(absl::StrCat(plain, std::string(kAttributesEnd))), nullptr) << plain;
  EXPECT_EQ(At(values, "size").list()[1].int_value(), 3);
  EXPECT_EQ(At(values, "dtype").string_value(), "torch.float16");
  EXPECT_EQ(At(values, "1").string_value(), "one");
  EXPECT_EQ(At(values, "(a, 2)").string_value(), "pair");
  EXPECT_EQ(At(values, "set").list()[0].int_value(), 5);
  EXPECT_EQ(At(Read(Data("plain.pkl")), "step").int_value(), 3);
}

TEST(Checkpoint, WhatAPickleWouldCallIsAValueAndNotCalled) {
  const std::string evidence = "/tmp/ott_checkpoint_was_run";
  std::filesystem::remove(evidence);
  const Value calls = Read(Data("calls.pt"));
  EXPECT_EQ(At(At(calls, "calls"), kClassEntry).string_value(), "posix.system");
  EXPECT_EQ(Elements(At(calls, "weight")), "float32[2]: 1 1");
  EXPECT_FALSE(std::filesystem::exists(evidence));
}

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
}

TEST(Zero, Stage3HasBuffersAndFrozenAndTiedWeightsToo) {
  EXPECT_EQ(AllElements(At(Read(Data("zero_3")), "module")), AllElements(Read(Data("zero_3_merged.pt"))));
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

// What of `other` is not as in `first`, by its definition; maps alone are compared in parts.
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

TEST(Zero, WithoutPartitionsOneFileIsTheState) {
  const Value state = Read(Data("zero_0"));
  EXPECT_EQ(At(state, "module").map().size(), 12);
  EXPECT_EQ(At(At(state, "optimizer"), "state").map().size(), 8);
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
      models.push_back(ValueMap{{"module", ValueMap()}, {"param_shapes", shapes}, {"x", states.back()}});
      const Value base = ValueMap{{"state", by_group}, {"param_groups", groups}};
      partitions.push_back(
          ValueMap{{"optimizer_state_dict",
                    ValueMap{{is_stage_3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups", flat},
                             {is_stage_3 ? "optimizer_state_dict" : "base_optimizer_state",
                              is_elastic ? list : base}}}});
    }
    const absl::StatusOr<Value> joined = JoinZeroPartitions(models, partitions);
    ASSERT_TRUE(joined.ok()) << joined.status();
    for (const auto& [name, kept] : At(At(*joined, "optimizer"), "state").map()) {
      for (const char* const of : {"fp32", "exp_avg"}) found[name + "." + of] = Elements(At(kept, of));
      const Value* const step = kept.map().Find("step");
      const Value* const of_first = others[0].map().Find("state." + name.substr(1, 1) + ".step");
      EXPECT_EQ(step == nullptr ? "none" : JsonOf(*step), of_first == nullptr ? "none" : JsonOf(*of_first));
    }
    for (const auto& [name, weight] : At(*joined, "module").map()) found["module." + name] = Elements(weight);
    for (int64_t group = 0; !is_elastic && group < num_groups; ++group) {
      const Value& groups = At(At(*joined, "optimizer"), "param_groups");
      found[absl::StrCat("params", group)] = JsonOf(At(groups.list()[static_cast<size_t>(group)], "params"));
    }
    EXPECT_EQ(found, expected);
    for (size_t rank = 1; rank < partitions.size(); ++rank) {
      ValueMap other;
      if (const auto of_model = Difference(states[0], states[rank])) other.Insert("x", *of_model);
      if (const auto of_optimizer = Difference(others[0], others[rank]))
        other.Insert("optimizer_state_dict", *of_optimizer);
      const Value* const kept = joined->map().Find(absl::StrCat("rank_", rank));
      EXPECT_EQ(kept == nullptr ? "{}" : JsonOf(*kept), JsonOf(other)) << rank;
    }
  }
}

TEST(Zero, PartsThatAreMissingAreNamed) {
  const auto error = [](const Value& kept, size_t size) {
    const Value partition =
        ValueMap{{"optimizer_state_dict",
                  ValueMap{{"single_partition_of_fp32_groups", Value::List{FlatOf(std::vector<float>(size))}},
                           {"base_optimizer_state", kept}}}};
    const Value shapes = Value::List{ValueMap{{"a", Value::List{2, 2}}, {"b", Value::List{3}}}};
    return std::string(
        JoinZeroPartitions({ValueMap{{"param_shapes", shapes}}}, {partition}).status().message());
  };
  EXPECT_THAT(error(ValueMap(), 4), HasSubstr("'b': its parts have 0 of 3 elements"));
  EXPECT_THAT(error(Value::List{}, 7), HasSubstr("no map of what the optimizer keeps of group 0"));
}

class Hostile : public testing::Test {
 protected:
  Hostile() { EXPECT_TRUE(MakeDirectories(dir_).ok()); }
  ~Hostile() override { std::filesystem::remove_all(dir_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(dir_, "/", name);
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return path;
  }
  std::string Error(const std::string& name, const std::string& bytes) {
    return std::string(ReadCheckpoint(Write(name, bytes)).status().message());
  }

  const std::string dir_ = absl::StrCat(testing::TempDir(), "/hostile_checkpoints");
};

std::string Bytes(const std::string& name) { return *ReadFile(Data(name)); }

std::string Replaced(std::string bytes, const std::string& from, const std::string& to) {
  const size_t at = bytes.find(from);
  EXPECT_NE(at, bytes.npos) << from;
  return bytes.replace(at, from.size(), to);
}

TEST_F(Hostile, AFileCutAnywhereIsAnErrorThatNamesIt) {
  for (const char* const name :
       {"weights.pt", "whole_legacy.pt", "weights.safetensors", "weights_compressed.npz", "plain.pkl"}) {
    const std::string whole = Bytes(name);
    for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
      EXPECT_THAT(Error("cut.pt", whole.substr(0, size)), HasSubstr("cut.pt: ")) << name << ", " << size;
    }
  }
}

TEST_F(Hostile, ATensorThatReachesOutOfItsStorageIsNamed) {
  // The shape (3, 4) of 0.weight, to (3, 5).
  EXPECT_THAT(
      Error("a.pt", Replaced(Bytes("weights.pt"), "K\x03K\x04\x86", "K\x03K\x05\x86")),
      HasSubstr(
          "'0.weight': a tensor of [3, 5] float32 at element 0 reaches out of its storage of 48 bytes"));
  // The 12 elements of its storage, to 13 and 11.
  for (const char elements : {13, 11}) {
    const std::string message = absl::StrCat("' has 48 bytes, but the pickle says ", 4 * elements);
    for (const auto& [file, place] : {std::pair("weights.pt", "cpuq\x07K"), {"whole_legacy.pt", "cpuq\tK"}}) {
      std::string bytes = Bytes(file);
      bytes[bytes.find(place) + 6] = elements;
      EXPECT_THAT(Error("a.pt", bytes), HasSubstr(message)) << file;
    }
  }
}

TEST_F(Hostile, AnArchiveThatUnpacksWithoutEndOrOverlapsIsAnError) {
  const std::string npz = Bytes("weights_compressed.npz");
  // The size of the first entry, in the directory: 20 + 4 bytes behind its signature.
  const size_t directory = npz.find("PK\x01\x02");
  std::string bomb = npz;
  bomb.replace(directory + 24, 4, std::string("\xff\xff\xff\x7f", 4));
  EXPECT_THAT(Error("bomb.npz", bomb), HasSubstr("'0.weight.npy' claims more bytes than it can hold"));
  // The same size in 64 bits, as an extra field behind the name.
  std::string large = npz;
  const std::string name = "0.weight.npy";
  large.replace(directory + 24, 4, std::string(4, '\xff'));
  large.replace(directory + 30, 1, "\x0c");
  large.insert(large.find(name, directory) + name.size(), std::string("\1\0\x8\0\1\0\0\0\1\0\0\0", 12));
  large[large.size() - 10] += 12;
  EXPECT_THAT(Error("large.npz", large),
              HasSubstr("the ZIP archive unpacks to more than 4294967296 bytes, at '0.weight.npy'"));
  // The second entry's offset, to the first one's.
  std::string overlap = npz;
  const size_t second = npz.find("PK\x01\x02", directory + 1);
  overlap.replace(second + 42, 4, std::string(4, '\0'));
  EXPECT_THAT(Error("overlap.npz", overlap), AnyOf(HasSubstr("is not at byte 0"), HasSubstr("overlap")));
  std::string damaged = npz;
  damaged[directory - 3] ^= 1;
  EXPECT_THAT(Error("damaged.npz", damaged), HasSubstr("damaged.npz: the ZIP entry '"));
}

TEST_F(Hostile, AnArchiveWithMoreThanItsFolderIsAnError) {
  std::string bytes = Bytes("weights.pt");
  for (int i = 0; i < 2; ++i) bytes = Replaced(bytes, "weights/version", "another/version");
  EXPECT_THAT(Error("a.pt", bytes),
              HasSubstr("the archive has 'another/version' beside its folder 'weights/'"));
}

TEST_F(Hostile, AnIndexThatLeadsOutOfItsFolderIsAnError) {
  for (const char* const file : {"../secret.safetensors", "/etc/passwd", "..", "a/b"}) {
    EXPECT_THAT(
        Error("model.safetensors.index.json", absl::StrCat(R"({"weight_map": {"w": ")", file, R"("}})")),
        HasSubstr("leads out of the folder"));
  }
}

TEST_F(Hostile, AnIndexThatNamesItselfIsAnError) {
  EXPECT_THAT(Error("m.index.json", R"({"weight_map": {"w": "m.index.json"}})"),
              HasSubstr("the file of 'w', 'm.index.json', is no file of tensors"));
}

TEST_F(Hostile, ADistributedCheckpointWhosePartsDoNotFitIsAnErrorThatNamesThem) {
  const std::string dir = absl::StrCat(dir_, "/dcp");
  std::filesystem::copy(Data("dcp_2"), dir);
  const auto error = [&] { return std::string(ReadCheckpoint(dir).status().message()); };
  const std::string metadata = Bytes("dcp_2/.metadata");
  const std::string chunks = Bytes("dcp_2/__1_0.distcp");
  Write("dcp/__1_0.distcp", chunks.substr(0, 5000));
  EXPECT_THAT(error(), HasSubstr("__1_0.distcp has 5000 bytes, but the metadata says"));
  std::filesystem::remove(dir + "/__1_0.distcp");
  EXPECT_THAT(error(), HasSubstr("__1_0.distcp"));
  Write("dcp/__1_0.distcp", chunks);
  Write("dcp/.metadata", Replaced(metadata, "__0_0.distcp", "../_0.distcp"));
  EXPECT_THAT(error(), HasSubstr("'../_0.distcp', leads out of the folder"));
}

TEST_F(Hostile, ElementsOfABucketThatMayBeAParametersAreAnError) {
  const std::string dir = absl::StrCat(dir_, "/buckets");
  std::filesystem::copy(Data("megatron_buckets"), dir);
  // The padding behind a parameter, in a file of another rank than the parameter.
  std::filesystem::copy_file(dir + "/__0_0.distcp", dir + "/__7_0.distcp");
  Write("buckets/.metadata",
        Replaced(Bytes("megatron_buckets/.metadata"), std::string("j\x7e\x03\0\0j\x7f\x03\0\0M\xe8\x6c", 13),
                 std::string("\x8c\x0c__7_0.distcpj\x7f\x03\0\0M\xe8\x6c", 22)));
  EXPECT_THAT(std::string(ReadCheckpoint(dir).status().message()),
              HasSubstr("its 56 elements at 136 are a parameter's or padding cannot be told"));
}

// Each repeats 4 bytes 800 million times.
TEST_F(Hostile, TensorsThatRepeatTheirStoragesWithoutEndAreAnError) {
  static constexpr char kTensor[] =
      "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x01"
      "0U\x03"
      "cpuK\x01tQK\0J\0\x08\xaf\x2f\x85K\0\x85\x89}tR";
  const auto state = [&](int num_tensors) {
    std::string bytes = "\x80\x02](";
    for (int i = 0; i < num_tensors; ++i) bytes.append(kTensor, sizeof(kTensor) - 1);
    bytes += "e.";
    const absl::StatusOr<Pickle> pickle = ParsePickle(bytes);
    EXPECT_TRUE(pickle.ok()) << pickle.status();
    return ToValue(*pickle, [](std::string_view, std::optional<int64_t>) -> absl::StatusOr<HeldBytes> {
      alignas(4) static constexpr char kStorage[4] = {};
      return HeldBytes{{kStorage, sizeof(kStorage)}, nullptr};
    });
  };
  EXPECT_TRUE(state(1).ok()) << state(1).status();
  EXPECT_THAT(std::string(state(2).status().message()), HasSubstr("repeat their storages so often"));
}

// Lists of one item each, a million items in.
TEST_F(Hostile, APathFarIntoManyListsIsAnError) {
  const auto text = [](const std::string& of) {
    return absl::StrCat("X", std::string(1, static_cast<char>(of.size())), std::string(3, '\0'), of);
  };
  const auto object = [](const std::string& attributes) { return "cm\nC\n)\x81}(" + attributes + "ub"; };
  std::string names, places, paths;
  for (const std::string name : {"a", "b", "c"}) {
    names += text(name) + "N";
    places += object(text("fqn") + text(name)) + object(text("relative_path") + text("f") + text("offset") +
                                                        std::string("K\0", 2) + text("length") + "M\x95\x0b");
    paths += text(name) + "(" + text("list_" + name) + std::string("J\xf0\xff\x0f\0", 5) + "t";
  }
  ASSERT_TRUE(MakeDirectories(dir_ + "/far").ok());
  Write("far/f", Bytes("weights.pt"));
  const std::string metadata =
      "\x80\x02" +
      object(text("state_dict_metadata") + "}(" + names + "u" + text("storage_data") + "}(" + places + "u" +
             text("planner_data") + "}(" + paths + "u") +
      ".";
  Write("far/.metadata", metadata);
  EXPECT_THAT(std::string(ReadCheckpoint(dir_ + "/far").status().message()),
              HasSubstr("a path of 'b' that does not fit the others"));
}

TEST_F(Hostile, AValueThatContainsItselfIsAnError) {
  EXPECT_THAT(Error("a.pkl",
                    "\x80\x02]q\x01h\x01"
                    "a."),
              HasSubstr("contains itself"));
  // Each of 40 lists holds the one before ten times.
  std::string lists = "\x80\x02]q\x01";
  for (int i = 0; i < 40; ++i)
    lists += std::string(
        "0](h\x01h\x01h\x01h\x01h\x01h\x01h\x01h\x01h\x01h\x01"
        "eq\x01");
  EXPECT_THAT(Error("b.pkl", lists + "."), HasSubstr("repeated so often"));
}

// Two bytes repeat a text of a megabyte, or bytes, or a key.
TEST_F(Hostile, ATextThatIsRepeatedWithoutEndIsAnError) {
  const std::string size("\0\0\x10\0", 4), text(size_t{1} << 20, 'a');
  const std::string recalls = absl::StrJoin(std::vector<std::string>(200, "h\x01"), "");
  for (const char* const opcode : {"X", "B"}) {
    EXPECT_THAT(Error("a.pkl", absl::StrCat("\x80\x03](", opcode, size, text, "q\x01", recalls, "e.")),
                HasSubstr("the texts in it are repeated so often"));
  }
  EXPECT_THAT(Error("a.pkl", absl::StrCat("\x80\x03}(X", size, text, "q\x01", recalls, "Nu.")),
              HasSubstr("a key of more than 64 KiB"));
}

TEST_F(Hostile, AnObjectAsTheStateOfANumPyDTypeIsNoOrderOfBytes) {
  const std::string bytes(
      "\x80\x02"
      "cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\nU\x02"
      "f8\x85Rcnumpy\ndtype\n)RbU\x01"
      "atR.");
  const absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(Write("a.pkl", bytes));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_NE(checkpoint->state.map().Find("__class__"), nullptr);
}

TEST(StateKind, NamesOfFrameworksAreKnown) {
  const auto name = [](const char* path, bool is_tensor = true) {
    return std::string(Name(StateKindOf(path, is_tensor)));
  };
  EXPECT_EQ(name("model.layers.0.weight"), "weights");
  EXPECT_EQ(name("layers.0.weight"), "weights");
  EXPECT_EQ(name("optimizer.state.0.exp_avg"), "optimizer moments");
  EXPECT_EQ(name("optimizer.state.0.step", false), "optimizer step");
  EXPECT_EQ(name("optimizer.param_groups.0.lr", false), "hyperparameters");
  EXPECT_EQ(name("scheduler.last_epoch", false), "schedule");
  EXPECT_EQ(name("rng_state.torch"), "random numbers");
  EXPECT_EQ(name("scaler.scale", false), "scaler");
  EXPECT_EQ(name("optimizer.overflow", false), "scaler");
  EXPECT_EQ(name("epoch", false), "data position");
  EXPECT_EQ(name("args.hidden_size", false), "configuration");
  EXPECT_EQ(name("native_amp_scaling_state.scale", false), "scaler");
  EXPECT_EQ(name("mp_rank_00.model_optim_rng.model.decoder.final_layernorm.weight"), "weights");
  EXPECT_EQ(name("mp_rank_00.model_optim_rng.rng_state.0.torch_rng_state"), "random numbers");
  EXPECT_EQ(name("mp_rank_00.model_optim_rng.iteration", false), "data position");
  EXPECT_EQ(name("mp_rank_00.model_optim_rng.optimizer.param_groups.0.lr", false), "hyperparameters");
  EXPECT_EQ(name("mp_rank_00.distrib_optim.0.float32.param"), "master weights");
  EXPECT_EQ(name("note", false), "other");
  EXPECT_EQ(RankOfPath("random_states_3.torch_manual_seed"), 3);
  EXPECT_EQ(RankOfPath("mp_rank_02_001.model_optim_rng.rng_state"), 2);
  EXPECT_EQ(RankOfPath("rng_state.torch"), std::nullopt);
}

}  // namespace
}  // namespace ott
