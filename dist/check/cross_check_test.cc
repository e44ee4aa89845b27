// On real ranks.

#include "ott/dist/check/cross_check.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/ranks_gtest.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kIteration = 20;

Deadline ForTests() { return Deadline::After(std::chrono::seconds(60)); }

CrossCheckConfig Config(const std::string& reference = "") {
  CrossCheckConfig config;
  config.mutable_iterations()->set_every(10);
  config.set_reference_run(reference);
  config.mutable_reference_tolerance()->set_atol(1e-6);
  return config;
}

struct Model {
  std::vector<float> weights = std::vector<float>(64 * 32, 0.25f);
  std::vector<float> scratch = {static_cast<float>(TestRanks().rank())};

  Value Tree() const {
    return ValueMap{{"weights", TensorView(weights.data(), {64, 32})},
                    {"scratch", TensorView(scratch.data(), {1})}};
  }
};

// With messages alone, and where a library gathers, too: the verdicts are the same.
class CrossCheckTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    // One folder for all ranks.
    std::string dir = std::string(std::getenv("TEST_TMPDIR")) + "/" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_TRUE(TestRanks().Broadcast(0, &dir, ForTests()).ok());
    reference_ = dir;
    if (TestRanks().rank() == 0) std::filesystem::remove_all(reference_);
    ASSERT_TRUE(TestRanks().Barrier(ForTests()).ok());
  }

  // Each rank's dump of its model, and run.json.
  void WriteReference(const Model& model, const Model* gradients = nullptr,
                      int world_size = TestRanks().size()) {
    const int rank = TestRanks().rank();
    std::filesystem::create_directories(DumpsDirectory(reference_, rank));
    if (rank == 0) {
      RunInfo info;
      info.set_world_size(world_size);
      ASSERT_TRUE(WriteRunInfo(reference_, info).ok());
    }
    const Value tensors = model.Tree();
    const Value grads = gradients == nullptr ? Value() : gradients->Tree();
    DumpContents contents;
    contents.tensors.tree = &tensors;
    contents.tensors.format = [](std::string_view) { return DumpFormat::kBinary; };
    if (gradients != nullptr) contents.grads.tree = &grads;
    ASSERT_TRUE(
        WriteDump(DumpsDirectory(reference_, rank) + "/" + std::to_string(kIteration), contents).ok());
    ASSERT_TRUE(TestRanks().Barrier(ForTests()).ok());
  }

  std::unique_ptr<CrossCheck> Create(const CrossCheckConfig& config) {
    CrossCheck::Collectives collectives;
    if (GetParam()) {
      const std::shared_ptr<Communicator> library = *TestRanks().Split(0, 0, ForTests());
      collectives.all_gather = [library](std::string_view bytes, Deadline deadline) {
        return library->AllGather(bytes, deadline);
      };
      collectives.are_equal = [library](absl::Span<const uint64_t> words, Deadline deadline) {
        const std::string mine(reinterpret_cast<const char*>(words.data()), 8 * words.size());
        const std::vector<std::string> all = *library->AllGather(mine, deadline);
        return absl::StatusOr<bool>(std::count(all.begin(), all.end(), mine) == library->size());
      };
    }
    auto check = CrossCheck::Create(TestRanks(), config, std::chrono::seconds(60), collectives, Meshes());
    EXPECT_TRUE(check.ok()) << check.status();
    return *std::move(check);
  }

  // "whole" is one part, "rank" a part each, and "half" a part for each second rank where they are even in
  // number.
  static RankMeshes Meshes() {
    const int size = TestRanks().size();
    ott::Config meshes;
    const auto add = [&](DeviceMesh& mesh, const char* name, int axis_size) {
      MeshAxis& axis = *mesh.add_axes();
      axis.set_name(name);
      axis.set_size(axis_size);
    };
    DeviceMesh& whole = *meshes.add_mesh();
    add(whole, "whole", 1);
    add(whole, "rank", size);
    if (size % 2 == 0) {
      DeviceMesh& halves = *meshes.add_mesh();
      add(halves, "outer", size / 2);
      add(halves, "half", 2);
    }
    return *RankMeshes::Create(meshes.mesh(), size);
  }

  std::string reference_;
};

TEST_P(CrossCheckTest, SelectsIterations) {
  const auto check = Create(Config());
  EXPECT_TRUE(check->Selects(20));
  EXPECT_FALSE(check->Selects(21));
  CrossCheckConfig config = Config();
  config.clear_iterations();
  EXPECT_TRUE(Create(config)->Selects(21));
}

TEST_P(CrossCheckTest, RefusesABadConfiguration) {
  CrossCheckConfig config = Config();
  config.mutable_reference_tolerance()->set_rtol(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(absl::IsInvalidArgument(CrossCheck::Create(TestRanks(), config).status()));
  config = Config();
  config.mutable_iterations()->set_every(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(CrossCheck::Create(TestRanks(), config).status()));
}

TEST_P(CrossCheckTest, WhatOneRankCannotReadIsAnErrorOfAll) {
  CrossCheckConfig config = Config();
  if (TestRanks().rank() == 1) config.set_reference_tolerances(reference_ + "/tolerances.textproto");
  const absl::Status status = CrossCheck::Create(TestRanks(), config).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 ("));
  EXPECT_THAT(std::string(status.message()), HasSubstr("tolerances.textproto"));
}

TEST_P(CrossCheckTest, ChecksOnlyTheReplicatedTensors) {
  CrossCheckConfig config = Config();
  config.add_replicated("wei*");
  const Model model;
  const CrossCheckVerdict verdict = *Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdict.outcome(), BITWISE_EQUAL) << FormatVerdict(verdict);
  EXPECT_EQ(verdict.num_tensors(), 1);
}

TEST_P(CrossCheckTest, AGlobThatMatchesNothingIsNoPass) {
  CrossCheckConfig config = Config();
  config.add_replicated("gradients.*");
  const Model model;
  const CrossCheckVerdict verdict = *Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
}

TEST_P(CrossCheckTest, EachGlobAndKindThatMatchesNothingIsNoPassAndNamed) {
  CrossCheckConfig config = Config();
  config.add_replicated("weights");
  config.add_replicated("wieghts*");
  config.add_replicated("layers[0].w");
  const Model model;
  CrossCheckVerdict verdict = *Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_EQ(verdict.reason(),
            "replicated: \"wieghts*\" matches no tensor; replicated: \"layers[0].w\" matches no tensor");

  config = Config();
  config.add_kinds(TENSOR_KIND_PARAMETER);
  config.add_kinds(TENSOR_KIND_OPTIMIZER_STATE);
  TensorsOfKind& parameters = *config.add_tensor_kinds();
  parameters.set_kind(TENSOR_KIND_PARAMETER);
  parameters.add_paths("weights");
  parameters.add_paths("bias");
  verdict = *Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_EQ(verdict.reason(),
            "tensor_kinds: \"bias\" matches no tensor; no tensor is TENSOR_KIND_OPTIMIZER_STATE");

  config = Config();
  ShardedTensors& sharded = *config.add_sharded();
  sharded.add_paths("weights");
  sharded.add_paths("experts.*");
  sharded.add_along("whole");
  verdict = Create(config)->CheckShards(kIteration, ListTensors(model.Tree()))[0];
  EXPECT_EQ(verdict.worst_outcome(), NOT_COMPARED);
  EXPECT_EQ(verdict.reason(), "sharded: \"experts.*\" matches no tensor");
}

TEST_P(CrossCheckTest, AGlobThatMatchesNothingHidesNoDifference) {
  CrossCheckConfig config = Config();
  config.add_replicated("weights");
  config.add_replicated("wieghts*");
  Model model;
  if (TestRanks().rank() == 1) model.weights[3] = 1;
  EXPECT_EQ(Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()))->outcome(), DIFFERENT);
}

TEST_P(CrossCheckTest, AKindThatIsNotThereIsNoPassAgainstTheReference) {
  CrossCheckConfig config = Config(reference_);
  config.add_kinds(TENSOR_KIND_OTHER);
  config.add_kinds(TENSOR_KIND_GRADIENT);
  const Model model;
  WriteReference(model);
  const CrossCheckVerdict verdict = Create(config)->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("no tensor is TENSOR_KIND_GRADIENT"));
}

TEST_P(CrossCheckTest, FindsTheFlippedBit) {
  Model model;
  const int culprit = TestRanks().size() - 1;
  if (TestRanks().rank() == culprit) model.weights[517] = 0.25f + 0x1p-25f;  // its lowest bit
  CrossCheckConfig config = Config();
  config.add_replicated("weights");
  const CrossCheckVerdict verdict = *Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_EQ(verdict.tensor(), "weights");
  ASSERT_EQ(verdict.differences_size(), 1);
  EXPECT_THAT(verdict.differences(0).index(), ElementsAre(16, 5));
  EXPECT_THAT(verdict.differences(0).flipped_bits(), ElementsAre(0));
  EXPECT_EQ(verdict.differences(0).ulp_distance(), 1);
  EXPECT_EQ(verdict.has_majority(), TestRanks().size() > 2);
  if (TestRanks().size() > 2) {
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(culprit));
  }
}

TEST_P(CrossCheckTest, WhatDiffersAmongReplicasIsCountedByKind) {
  const std::vector<float> same = {1};
  const std::vector<float> own = {static_cast<float>(TestRanks().rank())};
  const auto view = [](const std::vector<float>& values) { return TensorView(values.data(), {1}); };
  const Value tree = ValueMap{{"optimizer", ValueMap{{"m", view(same)}}},
                              {"weights", ValueMap{{"b", view(own)}, {"a", view(own)}, {"c", view(same)}}},
                              {"loss", view(same)}};
  const CrossCheckVerdict verdict = *Create(Config())->CheckReplicas(kIteration, ListTensors(tree));
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_THAT(FormatVerdict(verdict),
              HasSubstr("differ: parameters 2 of 3, optimizer state 0 of 1, others 0 of 1\n"));
}

TEST_P(CrossCheckTest, ShardsAreComparedWithTheReplicasOfTheSamePart) {
  if (TestRanks().size() != 4) return;
  const int rank = TestRanks().rank();
  Model model;
  for (float& weight : model.weights) weight = static_cast<float>(rank % 2);
  CrossCheckConfig config = Config();
  ShardedTensors& sharded = *config.add_sharded();
  sharded.add_paths("weights");
  sharded.add_along("half");
  const auto check = Create(config);
  std::vector<CrossCheckVerdict> verdicts = check->CheckShards(kIteration, ListTensors(model.Tree()));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].mode(), SHARDS);
  EXPECT_EQ(verdicts[0].worst_outcome(), BITWISE_EQUAL) << FormatVerdict(verdicts[0]);
  EXPECT_EQ(verdicts[0].num_tensors(), 1);
  EXPECT_EQ(check->CheckReplicas(kIteration, ListTensors(model.Tree()))->tensor(), "scratch");

  if (rank == 3) model.weights[5] = 0.5f;
  verdicts = check->CheckShards(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdicts[0].worst_outcome(), DIFFERENT);
  EXPECT_EQ(verdicts[0].worst_rank(), 1);
  EXPECT_EQ(verdicts[0].outcome(), rank % 2 == 1 ? DIFFERENT : BITWISE_EQUAL);
  if (rank % 2 == 1) {
    EXPECT_FALSE(verdicts[0].has_majority());
    EXPECT_THAT(verdicts[0].differences(0).ranks(), ElementsAre(3));
    EXPECT_THAT(FormatVerdict(verdicts[0]), HasSubstr("replicas of a shard DIFFER in tensor \"weights\""));
  } else {
    // Nobody can tell which one of two replicas is wrong: neither is named.
    EXPECT_THAT(FormatVerdict(verdicts[0]),
                HasSubstr("replicas of rank 1's shard DIFFER in tensor \"weights\""));
    EXPECT_THAT(FormatVerdict(verdicts[0]), HasSubstr("no majority, the ranks disagree"));
  }
}

TEST_P(CrossCheckTest, WhereAllTensorsAreShardsTheReplicaCheckIsLeftOut) {
  CrossCheckConfig config = Config();
  ShardedTensors& sharded = *config.add_sharded();
  sharded.add_paths("*");
  sharded.add_along("whole");
  Model model;
  model.scratch = {0};
  const auto check = Create(config);
  EXPECT_EQ(check->CheckReplicas(kIteration, ListTensors(model.Tree())), std::nullopt);
  EXPECT_EQ(check->CheckShards(kIteration, ListTensors(model.Tree()))[0].worst_outcome(), BITWISE_EQUAL);
  // An empty set of tensors is no pass of either.
  EXPECT_EQ(check->CheckReplicas(kIteration, {}), std::nullopt);
  EXPECT_EQ(check->CheckShards(kIteration, {})[0].worst_outcome(), NOT_COMPARED);
}

TEST_P(CrossCheckTest, TheFirstDivergenceIsTheEarliestTensorOfAnyRankNotTheLowestRank) {
  Model model;
  WriteReference(model);
  const int rank = TestRanks().rank();
  const int culprit = TestRanks().size() - 1;
  // A fault that is first on one rank shows later on all.
  if (rank == culprit) model.weights[517] = 0.5f;
  model.scratch[0] += 1;
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.worst_rank(), culprit);
  EXPECT_EQ(verdict.first_tensor(), "weights");
  EXPECT_THAT(verdict.first_ranks(), ElementsAre(culprit));
  const std::string size = std::to_string(TestRanks().size());
  const std::string alone =
      "on rank " + std::to_string(culprit) + " alone; " + size + " of " + size + " ranks differ\n";
  EXPECT_THAT(FormatVerdict(verdict),
              HasSubstr(rank == culprit ? "; first " + alone : "; the first is \"weights\", " + alone));
}

TEST_P(CrossCheckTest, ADifferenceOnAllRanksIsSaidToBeOnAll) {
  Model model;
  WriteReference(model);
  model.weights[517] = 0.5f;
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.worst_rank(), 0);
  EXPECT_THAT(FormatVerdict(verdict),
              HasSubstr("; on all " + std::to_string(TestRanks().size()) + " ranks\n"));
}

TEST_P(CrossCheckTest, ShardsWithoutReplicasNeedAReference) {
  const int size = TestRanks().size();
  CrossCheckConfig config = Config();
  ShardedTensors& sharded = *config.add_sharded();
  sharded.add_paths("weights");
  sharded.add_along("rank");
  Model model;
  const std::vector<CrossCheckVerdict> verdicts =
      Create(config)->CheckShards(kIteration, ListTensors(model.Tree()));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].worst_outcome(), NOT_COMPARED);

  // Rank 0's dump of the whole is the reference of all.
  for (size_t i = 0; i < model.weights.size(); ++i) model.weights[i] = static_cast<float>(i);
  model.scratch = {0};
  WriteReference(model, nullptr, 1);
  config.set_reference_run(reference_);
  config.add_reference_ranks(0);
  const auto check = Create(config);
  const int64_t rows = 64 / size;
  const auto shard = [&] {
    return Value(
        ValueMap{{"weights", TensorView(model.weights.data() + TestRanks().rank() * rows * 32, {rows, 32})},
                 {"scratch", TensorView(model.scratch.data(), {1})}});
  };
  EXPECT_TRUE(check->CheckShards(kIteration, ListTensors(shard())).empty());
  EXPECT_EQ(check->CheckReference(kIteration, shard(), nullptr).worst_outcome(), BITWISE_EQUAL);
  if (TestRanks().rank() == 1) model.weights[rows * 32 + 33] += 1;
  const CrossCheckVerdict verdict = check->CheckReference(kIteration, shard(), nullptr);
  EXPECT_EQ(verdict.worst_outcome(), DIFFERENT);
  EXPECT_EQ(verdict.worst_rank(), 1);
  if (TestRanks().rank() == 1) {
    EXPECT_THAT(verdict.differences(0).index(), ElementsAre(1, 1));
  }
}

TEST_P(CrossCheckTest, ReplicasMayDifferByTheToleranceThatIsConfigured) {
  CrossCheckConfig config = Config();
  config.add_replicated("weights");
  config.mutable_replica_tolerance()->set_atol(1e-3);
  Model model;
  model.weights[100] += 1e-4f * static_cast<float>(TestRanks().rank());
  CrossCheckVerdict verdict = *Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdict.outcome(), WITHIN_TOLERANCE) << FormatVerdict(verdict);
  EXPECT_NEAR(verdict.max_abs_error(), 1e-4 * (TestRanks().size() - 1), 1e-6);
  if (TestRanks().rank() == 0) model.weights[100] += 1;
  verdict = *Create(config)->CheckReplicas(kIteration, ListTensors(model.Tree()));
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  // Rank 0, which all are compared with first, is the culprit nevertheless.
  if (TestRanks().size() == 4) {
    EXPECT_TRUE(verdict.has_majority());
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(0));
    EXPECT_EQ(verdict.differences(0).element(), 100);
  }
}

TEST_P(CrossCheckTest, AnEqualReferenceIsEqualBitForBit) {
  const Model model;
  WriteReference(model, &model);
  const Value grads = model.Tree();
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), &grads);
  EXPECT_EQ(verdict.outcome(), BITWISE_EQUAL) << FormatVerdict(verdict);
  EXPECT_EQ(verdict.worst_outcome(), BITWISE_EQUAL);
  EXPECT_EQ(verdict.num_tensors(), 4);
}

TEST_P(CrossCheckTest, WithinToleranceIsSaidToDifferInItsBits) {
  Model model;
  WriteReference(model);
  model.weights[3] += 1e-7f;
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.outcome(), WITHIN_TOLERANCE) << FormatVerdict(verdict);
  EXPECT_EQ(verdict.num_different_tensors(), 1);
  EXPECT_GT(verdict.max_abs_error(), 0);
}

TEST_P(CrossCheckTest, ADifferenceFromTheReferenceOnOneRankIsKnownToAll) {
  Model model;
  WriteReference(model);
  if (TestRanks().rank() == 1) model.weights[517] = 0.5f;
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.worst_outcome(), DIFFERENT) << FormatVerdict(verdict);
  EXPECT_EQ(verdict.worst_rank(), 1);
  EXPECT_EQ(verdict.outcome(), TestRanks().rank() == 1 ? DIFFERENT : BITWISE_EQUAL);
  if (TestRanks().rank() == 1) {
    EXPECT_EQ(verdict.tensor(), "weights");
    ASSERT_EQ(verdict.differences_size(), 1);
    EXPECT_THAT(verdict.differences(0).index(), ElementsAre(16, 5));
    EXPECT_EQ(verdict.differences(0).value(), "0.5");
    EXPECT_EQ(verdict.differences(0).expected(), "0.25");
  }
}

TEST_P(CrossCheckTest, NanAgainstANumberIsADifference) {
  Model model;
  WriteReference(model);
  model.weights[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr).outcome(),
            DIFFERENT);
}

TEST_P(CrossCheckTest, AMissingReferenceIsNoPass) {
  const Model model;
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr(reference_));
}

TEST_P(CrossCheckTest, AMissingIterationIsNoPass) {
  const Model model;
  WriteReference(model);
  const CrossCheckVerdict verdict = Create(Config(reference_))->CheckReference(10, model.Tree(), nullptr);
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("in iteration 10; it has 1, from iteration 20 to 20"));
}

TEST_P(CrossCheckTest, AReferenceOfAnotherWorldSizeIsNoPass) {
  const Model model;
  WriteReference(model, nullptr, 8);
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("was made by 8 ranks, this run has"));
}

TEST_P(CrossCheckTest, OneRanksDumpsCanBeTheReferenceOfAll) {
  Model model;
  WriteReference(model, nullptr, 1);
  model.scratch = {1};  // as on rank 1, whose dumps these are
  CrossCheckConfig config = Config(reference_);
  config.add_reference_ranks(1);
  EXPECT_THAT(Create(config)->CheckReference(kIteration, model.Tree(), nullptr).reason(),
              HasSubstr("has no rank 1"));
  WriteReference(Model(), nullptr, 8);
  const CrossCheckVerdict verdict = Create(config)->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.worst_outcome(), BITWISE_EQUAL) << FormatVerdict(verdict);
  EXPECT_THAT(verdict.reference(), HasSubstr("rank_00001"));
}

TEST_P(CrossCheckTest, RanksCanBeMappedToThoseOfTheReference) {
  Model model;
  WriteReference(model, nullptr, 8);
  CrossCheckConfig config = Config(reference_);
  for (int rank = 0; rank < TestRanks().size(); ++rank)
    config.add_reference_ranks(TestRanks().size() - 1 - rank);
  model.scratch = {static_cast<float>(TestRanks().size() - 1 - TestRanks().rank())};
  EXPECT_EQ(Create(config)->CheckReference(kIteration, model.Tree(), nullptr).worst_outcome(), BITWISE_EQUAL);
  config.add_reference_ranks(0);
  EXPECT_TRUE(absl::IsInvalidArgument(CrossCheck::Create(TestRanks(), config).status()));
}

TEST_P(CrossCheckTest, ATruncatedFileOnOneRankIsNoPassOnAnyRank) {
  const Model model;
  WriteReference(model);
  if (TestRanks().rank() == 0) {
    const std::string dump = DumpsDirectory(reference_, 0) + "/" + std::to_string(kIteration);
    for (const auto& file : std::filesystem::directory_iterator(dump)) {
      if (file.path().extension() == ".bin") std::filesystem::resize_file(file, 10);
    }
  }
  ASSERT_TRUE(TestRanks().Barrier(ForTests()).ok());
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.worst_outcome(), NOT_COMPARED) << FormatVerdict(verdict);
  EXPECT_EQ(verdict.worst_rank(), 0);
}

TEST_P(CrossCheckTest, GradientsOnOneSideOnlyAreADifference) {
  const Model model;
  WriteReference(model, &model);
  const CrossCheckVerdict verdict =
      Create(Config(reference_))->CheckReference(kIteration, model.Tree(), nullptr);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_THAT(verdict.reason(), HasSubstr("the reference has gradients, this run has none"));
}

INSTANTIATE_TEST_SUITE_P(Collectives, CrossCheckTest, testing::Bool());

}  // namespace
}  // namespace ott
