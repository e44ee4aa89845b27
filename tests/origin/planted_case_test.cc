// Tests which operation is named in trainings whose fault is known.

#include "ott/tests/origin/planted_case.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/origin/origin_text.h"
#include "ott/tests/origin/simulated_training.h"

namespace ott::origin {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

std::string Dir() {
  return testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
}

// Trains and asks; an error fails the test.
PlantedResult Judge(const PlantedCase& planted) {
  PlantedResult result = RunPlanted(Dir(), planted);
  EXPECT_TRUE(result.verdict.ok()) << result.verdict.status();
  if (!result.verdict.ok()) result.verdict = OriginVerdict();
  return result;
}

// Bit for bit without a perturbed run, and else among sums in another order. Of a fault of the last iteration
// nothing that was logged reads what it makes.
TEST(Origin, AFaultIsFound) {
  constexpr int kLast = 3;
  for (int f = 1; f <= kNumFaults; ++f) {
    for (const bool perturbed : {false, true}) {
      for (const int iteration : {PlantedCase().fault_iteration, kLast}) {
        PlantedCase planted = {
            DType::kFloat32, static_cast<Fault>(f), 3, /*other_order=*/perturbed, perturbed, {}};
        planted.fault_iteration = iteration;
        const PlantedResult result = Judge(planted);
        EXPECT_TRUE(result.found) << TruthOf(planted.fault).description << ": " << result.verdict->verdict();
      }
    }
  }
}

TEST(Origin, SmallFaultsAreFoundAmongSumsInAnotherOrder) {
  for (int f = kNumFaults + 1; f <= kNumFaults + kNumSizedFaults; ++f) {
    for (const double size : {1.05, 1.15}) {
      const PlantedResult result =
          Judge({DType::kFloat32, static_cast<Fault>(f), 3, /*other_order=*/true, true, {}, size});
      EXPECT_TRUE(result.found) << TruthOf(static_cast<Fault>(f)).description << ", " << size
                                << " times: " << result.verdict->verdict();
      EXPECT_GT(result.verdict->relative_difference(), result.verdict->explained());
    }
  }
}

// These were named an iteration late, not at all, and as a product of rounded numbers that reads the weight.
TEST(Origin, ALearningRateThatIsTwoPercentWrongIsNamedInItsIteration) {
  const PlantedCase cases[] = {
      {DType::kBFloat16, Fault::kLearningRateOfOneTensor, 9501001, true, true, {}, 1.02, 64, "fc1.bias"},
      {DType::kBFloat16, Fault::kLearningRateOfOneTensor, 9501002, true, true, {}, 1.02, 128, "fc1.bias"},
      {DType::kFloat8E4M3, Fault::kLearningRateOfOneTensor, 9501001, true, true, {}, 1.02, 32, "fc1.weight"}};
  for (const PlantedCase& planted : cases) {
    const PlantedResult result = Judge(planted);
    EXPECT_TRUE(result.found) << result.verdict->verdict();
    EXPECT_THAT(result.verdict->detail(), HasSubstr("it adds 1.02 times as much as the reference's"));
  }
}

TEST(Origin, SumsInAnotherOrderAreNoFinding) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat8E4M3}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const PlantedResult result = Judge({dtype, Fault::kNone, seed, /*other_order=*/true, true, {}});
      EXPECT_EQ(result.verdict->kind(), OriginVerdict::NONE) << result.verdict->verdict();
    }
  }
}

// In this run two numbers of a gradient are rounded in opposite directions, and no sum of a sketch shows it.
TEST(Origin, AnInputWhoseDifferenceNoSketchShowsIsNotEqual) {
  const PlantedResult result = Judge({DType::kBFloat16, Fault::kNone, 9200072, true, true, {}});
  EXPECT_EQ(result.verdict->kind(), OriginVerdict::NONE) << result.verdict->verdict();
}

// Products of these runs round inside, in both of their few runs; they were called wrong. On another rank the
// same product takes most of what is explained.
TEST(Origin, AnExcessInFewRunsOfWhatRoundsInsideIsNoFinding) {
  for (const auto& [seed, hidden] : {std::pair(8120012, 64), {9700019, 128}}) {
    PlantedCase clean = {DType::kFloat8E4M3, Fault::kNone, static_cast<uint64_t>(seed), true, true, {}};
    clean.num_hidden = hidden;
    const PlantedResult result = Judge(clean);
    EXPECT_EQ(result.verdict->kind(), OriginVerdict::UNKNOWN) << result.verdict->verdict();
    EXPECT_THAT(result.verdict->problems(), Contains(HasSubstr("in the few runs of their operation")));
    EXPECT_THAT(result.verdict->problems(), Each(AnyOf(HasSubstr("in the few runs of their operation"),
                                                       HasSubstr("by most of what is explained"))));
  }
}

// These runs were called none: bfloat16 that is summed up in bfloat16 is as far off as 0.8 times what
// rounding explains.
TEST(Origin, WhatDiffersByMostOfWhatIsExplainedEachTimeCannotBeTold) {
  for (const uint64_t seed : {9701002, 9701011}) {
    const PlantedResult result = Judge({DType::kBFloat16, Fault::kNarrowAccumulation, seed, true, true, {}});
    EXPECT_EQ(result.verdict->kind(), OriginVerdict::UNKNOWN) << result.verdict->verdict();
    EXPECT_THAT(result.verdict->problems(), Contains(HasSubstr("the first of linear (fc1) in iteration")));
  }
}

// A scale that is off by less than is said not to be excluded may go unnoticed, one that is off by more not.
TEST(Origin, NoneSaysWhichFaultsItDoesNotExclude) {
  const PlantedResult none = Judge({DType::kFloat32, Fault::kNone, 3, true, true, {}});
  ASSERT_EQ(none.verdict->kind(), OriginVerdict::NONE);
  const double unseen = none.verdict->largest_unseen();
  EXPECT_GT(unseen, 0);
  EXPECT_THAT(none.verdict->verdict(), HasSubstr("are not excluded"));
  const PlantedResult found =
      Judge({DType::kFloat32, Fault::kLearningRate, 3, true, true, {}, 1 + 2 * unseen});
  EXPECT_TRUE(found.found) << found.verdict->verdict();
}

TEST(Origin, SumsInAnotherOrderAreNoFindingWhereMuchIsNotLogged) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const std::vector<std::string>& not_logged :
         {std::vector<std::string>{"adam"},
          {"layernorm", "gelu", "dropout", "add", "CrossEntropyBackward", "GeluDropoutBackward",
           "LayerNormBackward", "accumulate", "allreduce", "average"}}) {
      const PlantedResult result = Judge({dtype, Fault::kNone, 2, /*other_order=*/true, true, not_logged});
      EXPECT_THAT(result.verdict->kind(), AnyOf(OriginVerdict::NONE, OriginVerdict::UNKNOWN))
          << result.verdict->verdict();
    }
  }
}

TEST(Origin, AFaultThatIsNotLoggedIsFoundInWhatReadsIt) {
  for (const auto fault : {Fault::kSkippedUpdate, Fault::kLearningRateOnOneRank, Fault::kOptimizerEpsilon}) {
    const PlantedResult result = Judge({DType::kFloat32, fault, 3, /*other_order=*/true, true, {"adam"}});
    EXPECT_EQ(result.verdict->kind(), OriginVerdict::INPUT) << result.verdict->verdict();
    EXPECT_EQ(result.verdict->operation(), "linear");
    EXPECT_EQ(result.verdict->iteration(), 2);
  }
}

TEST(Origin, ARunThatRepeatsHasNoOrigin) {
  const PlantedResult result = Judge({DType::kFloat32, Fault::kNone, 5, false, false, {}});
  EXPECT_EQ(result.verdict->kind(), OriginVerdict::NONE);
  EXPECT_EQ(result.verdict->problems_size(), 0);
}

TEST(Origin, WithoutAPerturbedRunAnotherOrderOfSumsIsNamedAndCalledWhatItIs) {
  const PlantedResult result = Judge({DType::kFloat32, Fault::kNone, 6, true, false, {}});
  EXPECT_EQ(result.verdict->kind(), OriginVerdict::OPERATION);
  EXPECT_EQ(result.verdict->iteration(), 0);
  EXPECT_THAT(result.verdict->verdict(),
              AllOf(HasSubstr("inputs equal bit for bit"), HasSubstr("another order of its sums would")));
}

}  // namespace
}  // namespace ott::origin
