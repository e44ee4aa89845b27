#include "ott/dist/check/reference_check.h"

#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kIteration = 7;

// Four ranks with an axis "part" of `num_parts`, which runs fastest.
RankMeshes Meshes(int num_parts) {
  Config meshes;
  DeviceMesh& mesh = *meshes.add_mesh();
  for (const auto& [name, size] : {std::pair("replica", 4 / num_parts), std::pair("part", num_parts)}) {
    MeshAxis& axis = *mesh.add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  return *RankMeshes::Create(meshes.mesh(), 4);
}

// A whole tensor [4, 6] and two small ones, dumped by rank 0 of a reference run of one rank.
class ReferenceCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(dir_);
    std::iota(experts_.begin(), experts_.end(), 1.0f);
    RunInfo info;
    info.set_world_size(1);
    std::filesystem::create_directories(DumpsDirectory(dir_, 0));
    ASSERT_TRUE(WriteRunInfo(dir_, info).ok());
    const Value tree = Tree(TensorView(experts_.data(), {4, 6}));
    DumpContents contents;
    contents.tensors.tree = &tree;
    contents.tensors.format = [](std::string_view) { return DumpFormat::kBinary; };
    ASSERT_TRUE(WriteDump(Dump(), contents).ok());
  }

  std::string Dump() const { return DumpsDirectory(dir_, 0) + "/" + std::to_string(kIteration); }

  Value Tree(const TensorView& experts) const {
    return ValueMap{{"loss", 0.5},
                    {"weights", ValueMap{{"experts", experts}, {"bias", TensorView(bias_.data(), {2})}}}};
  }

  CrossCheckConfig Config(const std::string& more) const {
    CrossCheckConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(more, &config)) << more;
    config.set_reference_run(dir_);
    if (config.reference_ranks().empty()) config.add_reference_ranks(0);
    return config;
  }

  // The verdict on `rank` of 4, which holds columns 3 * part to 3 * part + 2 of the experts.
  CrossCheckVerdict CheckShard(int rank, int part, float change = 0) const {
    const auto check = ReferenceCheck::Create(
        Config(R"(sharded { paths: "*.experts" dimension: 1 along: "part" })"), Meshes(2));
    EXPECT_TRUE(check.ok()) << check.status();
    std::vector<float> shard;
    for (int row = 0; row < 4; ++row) {
      for (int column = 0; column < 3; ++column) shard.push_back(experts_[row * 6 + part * 3 + column]);
    }
    shard[7] += change;
    return check->Check(kIteration, rank, Tree(TensorView(shard.data(), {4, 3})), nullptr);
  }

  std::string dir_;
  std::vector<float> experts_ = std::vector<float>(24);
  std::vector<float> bias_ = {0.25f, 0.75f};
};

TEST_F(ReferenceCheckTest, TensorsAndGradientsHaveTheProgramsNames) {
  const auto write = [this](const Value& tensors, const Value& grads) {
    std::filesystem::remove_all(Dump());
    DumpContents contents;
    contents.tensors.tree = &tensors;
    contents.grads.tree = &grads;
    contents.tensors.format = contents.grads.format = [](std::string_view) { return DumpFormat::kBinary; };
    ASSERT_TRUE(WriteDump(Dump(), contents).ok());
  };
  write(ValueMap{{"w", 1.0}, {"grads", ValueMap{{"w", 1.0}}}}, ValueMap{{"w", 1.0}});
  const Value other = ValueMap{{"w", 2.0}, {"grads", ValueMap{{"w", 2.0}}}};
  const Value other_grads = ValueMap{{"w", 2.0}};
  const auto check = ReferenceCheck::Create(Config(""), RankMeshes(1));
  ASSERT_TRUE(check.ok()) << check.status();
  const CrossCheckVerdict verdict = check->Check(kIteration, 0, other, &other_grads);
  EXPECT_EQ(verdict.tensor(), "w");
  std::vector<std::string> names;
  for (const TensorError& error : verdict.tensor_errors()) names.push_back(error.tensor());
  EXPECT_EQ(names, (std::vector<std::string>{"w", "tensors.grads.w", "grads.w"}));
}

TEST_F(ReferenceCheckTest, AShardIsComparedWithItsPartOfTheWhole) {
  EXPECT_EQ(CheckShard(0, 0).outcome(), BITWISE_EQUAL) << FormatVerdict(CheckShard(0, 0));
  EXPECT_EQ(CheckShard(3, 1).outcome(), BITWISE_EQUAL);
  EXPECT_EQ(CheckShard(3, 0).outcome(), DIFFERENT);
  const CrossCheckVerdict verdict = CheckShard(1, 1, 0.5f);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_EQ(verdict.tensor(), "weights.experts");
  EXPECT_EQ(verdict.num_different_tensors(), 1);
  EXPECT_THAT(verdict.differences(0).index(), ElementsAre(2, 1));
}

TEST_F(ReferenceCheckTest, AShardOfAnotherShapeIsADifference) {
  const auto check = ReferenceCheck::Create(
      Config(R"(sharded { paths: "*.experts" dimension: 1 along: "part" })"), Meshes(4));
  const CrossCheckVerdict verdict =
      check->Check(kIteration, 0, Tree(TensorView(experts_.data(), {4, 3})), nullptr);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_THAT(verdict.reason(), HasSubstr("shape"));
}

TEST_F(ReferenceCheckTest, ATextThatDiffersIsNoTensorAndNaNOnBothSidesIsNoDifference) {
  bias_[0] = std::numeric_limits<float>::quiet_NaN();
  const auto with = [this](const char* schedule) {
    return Value(ValueMap{{"bias", TensorView(bias_.data(), {2})}, {"schedule", schedule}});
  };
  std::filesystem::remove_all(Dump());
  const Value reference = with("cosine");
  DumpContents contents;
  contents.tensors.tree = &reference;
  ASSERT_TRUE(WriteDump(Dump(), contents).ok());
  const auto check = ReferenceCheck::Create(Config(""), RankMeshes(1));
  EXPECT_EQ(check->Check(kIteration, 0, with("cosine"), nullptr).outcome(), BITWISE_EQUAL);
  const CrossCheckVerdict verdict = check->Check(kIteration, 0, with("linear"), nullptr);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_EQ(verdict.tensor(), "schedule");
  EXPECT_EQ(verdict.dtype(), "");
  ASSERT_EQ(verdict.tensor_errors_size(), 1);
  EXPECT_THAT(verdict.tensor_errors(0).problem(), HasSubstr(R"(reference "cosine", current "linear")"));
  bias_[1] += 1;
  const CrossCheckVerdict other = check->Check(kIteration, 0, with("cosine"), nullptr);
  EXPECT_THAT(other.differences(0).index(), ElementsAre(1));
}

TEST_F(ReferenceCheckTest, WhatDiffersIsCountedByKind) {
  const auto check = ReferenceCheck::Create(Config(""), RankMeshes(1));
  bias_[0] = 1;
  const CrossCheckVerdict verdict =
      check->Check(kIteration, 0, Tree(TensorView(experts_.data(), {4, 6})), nullptr);
  EXPECT_EQ(FormatKinds(verdict.kinds()), "parameters 1 of 2, others 0 of 1");
  EXPECT_THAT(FormatVerdict(verdict), HasSubstr("    differ: parameters 1 of 2, others 0 of 1\n"));
}

TEST_F(ReferenceCheckTest, OnlyTheKindsAskedForAreCompared) {
  experts_[0] = 0;
  const Value changed = ValueMap{
      {"loss", 0.75}, {"weights", Tree(TensorView(experts_.data(), {4, 6})).map().Find("weights")->map()}};
  const auto all = ReferenceCheck::Create(Config(""), RankMeshes(4));
  EXPECT_EQ(all->Check(kIteration, 0, changed, nullptr).num_different_tensors(), 2);
  const auto parameters = ReferenceCheck::Create(Config("kinds: TENSOR_KIND_PARAMETER"), RankMeshes(4));
  EXPECT_EQ(parameters->Check(kIteration, 0, changed, nullptr).num_different_tensors(), 1);
  const auto both =
      ReferenceCheck::Create(Config("kinds: [ TENSOR_KIND_PARAMETER, TENSOR_KIND_GRADIENT ]"), RankMeshes(4));
  const Value unchanged = ReadDump(Dump())->tensors;
  EXPECT_EQ(parameters->Check(kIteration, 0, unchanged, nullptr).outcome(), BITWISE_EQUAL);
  EXPECT_EQ(both->Check(kIteration, 0, unchanged, nullptr).outcome(), NOT_COMPARED);
  EXPECT_EQ(both->Check(kIteration, 0, unchanged, nullptr).reason(), "no tensor is TENSOR_KIND_GRADIENT");
  const auto gradients = ReferenceCheck::Create(Config("kinds: TENSOR_KIND_GRADIENT"), RankMeshes(4));
  EXPECT_EQ(gradients->Check(kIteration, 0, changed, nullptr).outcome(), NOT_COMPARED);
}

TEST_F(ReferenceCheckTest, ToleranceOfATensorComesFromTheFile) {
  const std::string path = dir_ + "/tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(path, R"(tensors { path: "weights.experts" atol: 0.5 })").ok());
  const auto check = ReferenceCheck::Create(Config("reference_tolerances: \"" + path + "\""), RankMeshes(4));
  ASSERT_TRUE(check.ok()) << check.status();
  experts_[5] += 0.5f;
  CrossCheckVerdict verdict = check->Check(kIteration, 0, Tree(TensorView(experts_.data(), {4, 6})), nullptr);
  EXPECT_EQ(verdict.outcome(), WITHIN_TOLERANCE) << FormatVerdict(verdict);
  ASSERT_EQ(verdict.tensor_errors_size(), 1);
  EXPECT_EQ(verdict.tensor_errors(0).tensor(), "weights.experts");
  EXPECT_EQ(verdict.tensor_errors(0).max_abs_error(), 0.5);
  experts_[5] += 0.5f;
  EXPECT_EQ(check->Check(kIteration, 0, Tree(TensorView(experts_.data(), {4, 6})), nullptr).outcome(),
            DIFFERENT);
  experts_[5] -= 1.0f;
  bias_[0] += 0.125f;
  verdict = check->Check(kIteration, 0, Tree(TensorView(experts_.data(), {4, 6})), nullptr);
  EXPECT_EQ(verdict.outcome(), DIFFERENT) << "what the file does not name";
}

TEST_F(ReferenceCheckTest, AFileThatHoldsNoTolerancesIsNamed) {
  const std::string path = dir_ + "/tolerances.textproto";
  const CrossCheckConfig config = Config("reference_tolerances: \"" + path + "\"");
  EXPECT_THAT(std::string(ReferenceCheck::Create(config, RankMeshes(4)).status().message()), HasSubstr(path));
  ASSERT_TRUE(WriteFileAtomically(path, "tensors {\n  atol: many\n}").ok());
  EXPECT_THAT(std::string(ReferenceCheck::Create(config, RankMeshes(4)).status().message()),
              HasSubstr(path + ":2:"));
  ASSERT_TRUE(WriteFileAtomically(path, "tensors { path: \"w\" atol: nan }").ok());
  EXPECT_THAT(std::string(ReferenceCheck::Create(config, RankMeshes(4)).status().message()),
              HasSubstr("w: atol"));
}

TEST_F(ReferenceCheckTest, OneRankOfTheReferenceIsNamedForEachOrForAll) {
  for (int count = 1; count <= 6; ++count) {
    CrossCheckConfig config = Config("");
    while (config.reference_ranks_size() < count) config.add_reference_ranks(0);
    const absl::Status status = ReferenceCheck::Create(config, RankMeshes(4)).status();
    EXPECT_EQ(absl::IsInvalidArgument(status), count != 1 && count != 4);
    if (status.ok()) continue;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(count) + " entries for 4 ranks"));
  }
}

TEST_F(ReferenceCheckTest, ADumpIsComparedAsTheTensorsInMemoryAre) {
  const auto check = ReferenceCheck::Create(Config(""), RankMeshes(4));
  std::filesystem::copy(Dump(), dir_ + "/copy", std::filesystem::copy_options::recursive);
  EXPECT_EQ(check->CheckDump(kIteration, 2, dir_ + "/copy").outcome(), BITWISE_EQUAL);
  const CrossCheckVerdict itself = check->CheckDump(kIteration, 2, Dump());
  EXPECT_EQ(itself.outcome(), NOT_COMPARED);
  EXPECT_THAT(itself.reason(), HasSubstr("always agrees"));
  const CrossCheckVerdict verdict = check->CheckDump(kIteration, 2, dir_ + "/nothing");
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("nothing"));
}

TEST_F(ReferenceCheckTest, AReferenceThatCannotBeReachedIsNotComparedAndSaysWhy) {
  const std::string loop = ::testing::TempDir() + "/loop";
  std::filesystem::remove(loop);
  std::filesystem::create_symlink(loop, loop);
  for (const std::string& reference : {loop, std::string(100000, 'x')}) {
    CrossCheckConfig config;
    config.set_reference_run(reference);
    const auto check = ReferenceCheck::Create(config, RankMeshes(1));
    ASSERT_TRUE(check.ok()) << check.status();
    const CrossCheckVerdict verdict = check->Check(0, 0, ValueMap(), nullptr);
    EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
    EXPECT_FALSE(verdict.reason().empty());
  }
}

}  // namespace
}  // namespace ott
