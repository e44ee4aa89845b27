#include "ott/questions/right/crosscheck/check_reference.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::crosscheck {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Property;

// Two runs of 2 ranks with dumps of iterations 0, 10, 20; in the second, rank 1's error grows tenfold each
// time.
class CheckRunAgainstReferenceTest : public testing::Test {
 protected:
  void SetUp() override {
    reference_ = MakeRunForTest("reference", 2);
    current_ = MakeRunForTest("current", 2);
    float error = 0;
    for (const int iteration : {0, 10, 20}) {
      for (int rank = 0; rank < 2; ++rank) {
        WriteDumpForTest(reference_, rank, iteration, {1, 2, 4});
        WriteDumpForTest(current_, rank, iteration, {1, rank == 1 ? 2 + error : 2, 4});
      }
      error = error == 0 ? 0.0078125f : error * 16;
    }
    config_.set_reference_run(reference_);
  }

  std::vector<CrossCheckVerdict> Check() const {
    const auto verdicts = CheckRunAgainstReference(current_, config_);
    EXPECT_TRUE(verdicts.ok()) << verdicts.status();
    return verdicts.ok() ? *verdicts : std::vector<CrossCheckVerdict>();
  }

  std::string reference_;
  std::string current_;
  CrossCheckConfig config_;
};

TEST_F(CheckRunAgainstReferenceTest, NamesTheFirstDivergenceAndTheTrend) {
  const std::vector<CrossCheckVerdict> verdicts = Check();
  ASSERT_EQ(verdicts.size(), 6u);
  EXPECT_EQ(verdicts[1].outcome(), BITWISE_EQUAL);
  EXPECT_EQ(verdicts[2].outcome(), BITWISE_EQUAL);
  EXPECT_EQ(verdicts[3].outcome(), DIFFERENT);
  const std::string trend = FormatErrorTrend(verdicts);
  EXPECT_THAT(trend, HasSubstr("first divergence: iteration 10: rank 1 (node1) against "));
  EXPECT_THAT(trend, HasSubstr("element 1 = [1]: 2.0078125 on rank 1 (node1) instead of 2"));
  EXPECT_THAT(trend, HasSubstr("max abs error, of all ranks  from iteration  at 0    at 10  at 20\n"
                               "weights                                  10     0  0.00781  0.125\n"));
}

TEST_F(CheckRunAgainstReferenceTest, TheFirstTensorOfAnyRankComesBeforeTheLowestRank) {
  WriteDumpForTest(reference_, 0, 10, {1, 2, 5});
  // "step" comes before "weights".
  const Value other_step = ValueMap{{"step", 11}};
  WriteTreeForTest(current_, 1, 10, other_step);
  const std::string trend = FormatErrorTrend(Check());
  EXPECT_THAT(trend, HasSubstr("first divergence: iteration 10: rank 1 (node1) against "));
  EXPECT_THAT(trend, HasSubstr("\"step\""));
  EXPECT_THAT(trend, HasSubstr("; first on rank 1 alone; 2 of 2 ranks differ\n"));
}

TEST_F(CheckRunAgainstReferenceTest, WithinToleranceThereIsATrendAndNoDivergence) {
  config_.mutable_reference_tolerance()->set_atol(1);
  const std::vector<CrossCheckVerdict> verdicts = Check();
  EXPECT_EQ(verdicts[3].outcome(), WITHIN_TOLERANCE);
  const std::string trend = FormatErrorTrend(verdicts);
  EXPECT_THAT(trend, Not(HasSubstr("first divergence")));
  EXPECT_THAT(trend, HasSubstr("0.125"));
}

TEST_F(CheckRunAgainstReferenceTest, RanksCanBeMapped) {
  config_.add_reference_ranks(1);
  config_.add_reference_ranks(0);
  std::swap(reference_, current_);
  config_.set_reference_run(reference_);
  const std::vector<CrossCheckVerdict> verdicts = Check();
  EXPECT_EQ(verdicts[2].outcome(), DIFFERENT);  // with rank 1 of what is the reference now
  EXPECT_EQ(verdicts[3].outcome(), BITWISE_EQUAL);
}

TEST_F(CheckRunAgainstReferenceTest, IterationsThatOneRunLacksAreNotCompared) {
  std::filesystem::remove_all(DumpsDirectory(reference_, 0) + "/10");
  std::filesystem::remove_all(DumpsDirectory(current_, 0) + "/20");
  const std::vector<CrossCheckVerdict> verdicts = Check();
  ASSERT_EQ(verdicts.size(), 6u);
  EXPECT_EQ(verdicts[2].outcome(), NOT_COMPARED);
  EXPECT_THAT(verdicts[2].reason(),
              HasSubstr("no dump of rank 0 in iteration 10; it has 2, from iteration 0 to 20"));
  EXPECT_EQ(verdicts[4].outcome(), NOT_COMPARED);
  EXPECT_THAT(verdicts[4].reason(), HasSubstr(current_));
}

TEST_F(CheckRunAgainstReferenceTest, ACutFileIsNotCompared) {
  std::filesystem::resize_file(DumpsDirectory(reference_, 0) + "/0/[tensors.json]weights.bin", 3);
  const std::vector<CrossCheckVerdict> verdicts = Check();
  EXPECT_EQ(verdicts[0].outcome(), NOT_COMPARED);
  EXPECT_THAT(verdicts[0].reason(), HasSubstr("weights.bin"));
}

TEST_F(CheckRunAgainstReferenceTest, RunsOfOtherSizesNeedAMap) {
  config_.set_reference_run(MakeRunForTest("of_one_rank", 1));
  EXPECT_THAT(Check(), Each(Property(&CrossCheckVerdict::outcome, NOT_COMPARED)));
  for (const int iteration : {0, 10, 20}) {
    WriteDumpForTest(config_.reference_run(), 0, iteration, {1, 2, 4});
  }
  config_.add_reference_ranks(0);
  EXPECT_EQ(Check()[4].outcome(), BITWISE_EQUAL);
  EXPECT_EQ(Check()[5].outcome(), DIFFERENT);
}

TEST_F(CheckRunAgainstReferenceTest, ARunIsNotComparedWithItself) {
  config_.set_reference_run(current_ + "/.");
  EXPECT_THAT(std::string(CheckRunAgainstReference(current_, config_).status().message()),
              testing::HasSubstr("would be compared with itself"));
}

TEST_F(CheckRunAgainstReferenceTest, ADumpIsNotComparedWithItself) {
  config_.set_reference_run(current_);
  config_.add_reference_ranks(0);
  const std::vector<CrossCheckVerdict> verdicts = Check();
  EXPECT_EQ(verdicts[0].outcome(), NOT_COMPARED);
  EXPECT_THAT(verdicts[0].reason(), HasSubstr("always agrees"));
  EXPECT_EQ(verdicts[1].outcome(), BITWISE_EQUAL);
}

TEST_F(CheckRunAgainstReferenceTest, RunsWithoutDumpsAreAnError) {
  config_.set_reference_run(MakeRunForTest("empty", 2));
  EXPECT_TRUE(absl::IsNotFound(CheckRunAgainstReference(MakeRunForTest("empty2", 2), config_).status()));
  EXPECT_TRUE(absl::IsNotFound(CheckRunAgainstReference(current_ + "/nothing", config_).status()));
}

}  // namespace
}  // namespace ott::crosscheck
