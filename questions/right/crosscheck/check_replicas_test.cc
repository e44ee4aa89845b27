#include "ott/questions/right/crosscheck/check_replicas.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::crosscheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CrossCheckConfig Replicated(const std::string& glob) {
  CrossCheckConfig config;
  config.add_replicated(glob);
  return config;
}

// Dumps of 3 ranks in iterations 0 and 10; rank 1's weights differ in iteration 10.
class CheckReplicasOfRunTest : public testing::Test {
 protected:
  void SetUp() override {
    run_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(run_);
    for (int rank = 0; rank < 3; ++rank) {
      for (const int iteration : {0, 10}) {
        std::vector<float> weights(8, 0.5f);
        if (rank == 1 && iteration == 10) weights[3] = 0.25f;
        const float own = static_cast<float>(rank);
        const Value tree =
            ValueMap{{"own", TensorView(&own, {1})}, {"weights", TensorView(weights.data(), {2, 4})}};
        DumpContents contents;
        contents.tensors.tree = &tree;
        contents.grads.tree = &tree;
        std::filesystem::create_directories(DumpsDirectory(run_, rank));
        ASSERT_TRUE(WriteDump(Dump(rank, iteration), contents).ok());
      }
    }
  }

  std::string Dump(int rank, int iteration) const {
    return DumpsDirectory(run_, rank) + "/" + std::to_string(iteration);
  }

  std::string run_;
};

TEST_F(CheckReplicasOfRunTest, FindsTheRankAndTheIteration) {
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("weights"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  ASSERT_EQ(verdicts->size(), 2u);
  EXPECT_EQ((*verdicts)[0].outcome(), BITWISE_EQUAL);
  EXPECT_EQ((*verdicts)[1].outcome(), DIFFERENT);
  EXPECT_EQ((*verdicts)[1].iteration(), 10);
  EXPECT_THAT((*verdicts)[1].culprit_ranks(), ElementsAre(1));
  EXPECT_THAT((*verdicts)[1].differences(0).index(), ElementsAre(0, 3));
}

TEST_F(CheckReplicasOfRunTest, GradientsAreBelowGrads) {
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("grads.weights"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].num_tensors(), 1);
  EXPECT_EQ((*verdicts)[1].tensor(), "grads.weights");
}

TEST_F(CheckReplicasOfRunTest, ARankWhoseManifestIsLostIsNotBlamed) {
  const Value loss = ValueMap{{"loss", Value(0.5)}};
  for (int rank = 0; rank < 3; ++rank) {
    std::filesystem::remove_all(Dump(rank, 10));
    DumpContents contents;
    contents.tensors.tree = &loss;
    ASSERT_TRUE(WriteDump(Dump(rank, 0), contents).ok());
  }
  std::filesystem::remove(Dump(2, 0) + "/manifest.json");
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("*"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].outcome(), NOT_COMPARED);
  EXPECT_THAT((*verdicts)[0].missing_ranks(), ElementsAre(2));
}

// Tensors of which no elements were dumped are as different as they were in the run.
TEST_F(CheckReplicasOfRunTest, StatisticsAndImagesAreComparedByTheirDigests) {
  for (const DumpFormat format : {DumpFormat::kStatistics, DumpFormat::kImageI}) {
    for (int rank = 0; rank < 3; ++rank) {
      // The same statistics and the same image: two that are neither least nor largest are close.
      const float data[] = {0, 10, rank == 1 ? 5.001f : 5.0f, 1};
      const Value tree = ValueMap{{"weights", TensorView(data, {2, 2})}};
      DumpContents contents;
      contents.tensors = {&tree, [&](std::string_view) { return format; }};
      for (const int iteration : {0, 10}) {
        std::filesystem::remove_all(Dump(rank, iteration));
        ASSERT_TRUE(WriteDump(Dump(rank, iteration), contents).ok());
      }
    }
    const auto verdicts = CheckReplicasOfRun(run_, Replicated("weights"));
    ASSERT_TRUE(verdicts.ok()) << verdicts.status();
    EXPECT_EQ((*verdicts)[0].outcome(), DIFFERENT) << Name(format);
    EXPECT_EQ((*verdicts)[0].tensor(), "weights");
    EXPECT_THAT((*verdicts)[0].culprit_ranks(), ElementsAre(1));
  }
  // Without a digest, equal images tell nothing.
  for (int rank = 0; rank < 3; ++rank) std::filesystem::remove(Dump(rank, 0) + "/manifest.json");
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("weights*"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].outcome(), NOT_COMPARED);
  EXPECT_THAT((*verdicts)[0].reason(), HasSubstr("of an image, or of statistics, without a digest"));
}

TEST_F(CheckReplicasOfRunTest, EqualStatisticsWithoutADigestAreNoPass) {
  for (int rank = 0; rank < 3; ++rank) {
    std::filesystem::remove_all(Dump(rank, 0));
    std::filesystem::create_directories(Dump(rank, 0));
    std::ofstream(Dump(rank, 0) + "/tensors.json")
        << R"({"weights": {"tensor_statistics": {"min": 0.0, "max": 1.0, "num_elements": 8}}})";
  }
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("*"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].outcome(), NOT_COMPARED);
  EXPECT_THAT((*verdicts)[0].reason(), HasSubstr("statistics, without a digest"));
}

TEST_F(CheckReplicasOfRunTest, ADumpThatLinksToThatOfAnotherRankIsNoPass) {
  std::filesystem::remove_all(Dump(2, 0));
  std::filesystem::create_directory_symlink(Dump(0, 0), Dump(2, 0));
  std::filesystem::remove(Dump(1, 10) + "/tensors.json");
  std::filesystem::create_symlink(Dump(0, 10) + "/tensors.json", Dump(1, 10) + "/tensors.json");
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("weights"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  for (const int i : {0, 1}) {
    EXPECT_EQ((*verdicts)[i].outcome(), NOT_COMPARED);
    EXPECT_THAT((*verdicts)[i].missing_ranks(), ElementsAre(2 - i));
    EXPECT_THAT((*verdicts)[i].reason(), HasSubstr("links to the dump of rank 0"));
  }
}

TEST_F(CheckReplicasOfRunTest, NumbersAndTextsAreReplicas) {
  for (int rank = 0; rank < 3; ++rank) {
    const Value tree = ValueMap{{"rate", rank == 2 ? 0.2 : 0.1}, {"schedule", "cosine"}};
    DumpContents contents;
    contents.tensors.tree = &tree;
    std::filesystem::remove_all(Dump(rank, 0));
    ASSERT_TRUE(WriteDump(Dump(rank, 0), contents).ok());
  }
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("*"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].outcome(), DIFFERENT);
  EXPECT_EQ((*verdicts)[0].num_tensors(), 2);
  EXPECT_EQ((*verdicts)[0].tensor(), "rate");
  EXPECT_THAT((*verdicts)[0].culprit_ranks(), ElementsAre(2));
}

TEST_F(CheckReplicasOfRunTest, OfSeveralStartsTheLatestIsChecked) {
  std::filesystem::create_directories(run_ + "/attempt_2");
  for (int rank = 0; rank < 3; ++rank) {
    std::filesystem::rename(RankDirectory(run_, rank), RankDirectory(run_ + "/attempt_2", rank));
    const Value tree = ValueMap{{"weights", 0.5}};
    DumpContents contents;
    contents.tensors.tree = &tree;
    std::filesystem::create_directories(DumpsDirectory(run_, rank));
    ASSERT_TRUE(WriteDump(Dump(rank, 10), contents).ok());
  }
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("weights"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ(verdicts->back().outcome(), DIFFERENT);
  const auto first = CheckReplicasOfRun(run_ + "/attempt_1", Replicated("weights"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->back().outcome(), BITWISE_EQUAL);
}

TEST_F(CheckReplicasOfRunTest, ARunJsonThatCannotBeReadIsNoPass) {
  std::filesystem::create_directories(run_ + "/run.json");
  EXPECT_THAT(std::string(CheckReplicasOfRun(run_, Replicated("own")).status().message()),
              HasSubstr("run.json"));
}

TEST_F(CheckReplicasOfRunTest, ARankWithoutAReadableDumpIsNamedAndTheOthersAreCompared) {
  std::filesystem::remove_all(Dump(2, 0));
  std::filesystem::resize_file(Dump(2, 10) + "/tensors.json", 5);
  const auto verdicts = CheckReplicasOfRun(run_, Replicated("weights"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].outcome(), NOT_COMPARED);
  EXPECT_THAT((*verdicts)[0].missing_ranks(), ElementsAre(2));
  EXPECT_EQ((*verdicts)[1].outcome(), DIFFERENT);
  EXPECT_THAT((*verdicts)[1].reason(), HasSubstr("tensors.json"));
}

TEST_F(CheckReplicasOfRunTest, ARunWithoutDumpsIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(CheckReplicasOfRun(run_ + "/nowhere", {}).status()));
  for (int rank = 0; rank < 3; ++rank) std::filesystem::remove_all(DumpsDirectory(run_, rank));
  EXPECT_TRUE(absl::IsNotFound(CheckReplicasOfRun(run_, {}).status()));
}

TEST_F(CheckReplicasOfRunTest, AWorldSizeThatIsNoneOrTooLargeIsAnError) {
  std::ofstream(run_ + "/run.json") << R"({"world_size": 2000000000})";
  EXPECT_TRUE(absl::IsDataLoss(CheckReplicasOfRun(run_, Replicated("weights")).status()));
  std::ofstream(run_ + "/run.json") << R"({"world_size": 100000})";
  EXPECT_TRUE(absl::IsInvalidArgument(CheckReplicasOfRun(run_, Replicated("weights")).status()));
}

}  // namespace
}  // namespace ott::crosscheck
