// Verdicts about time of trainings of all shapes, planted and clean.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/tests/shapes/simulated_training.h"

namespace ott::shapes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShapesTest : public ::testing::TestWithParam<bool> {};

TEST_P(ShapesTest, NameWhatIsPlantedAndNobodyElseAndStateWhatItCosts) {
  constexpr int kRuns = 2;
  for (const Shape& shape : Shapes()) {
    if (GetParam() && shape.cannot_be_told) continue;
    for (const int num_ranks : shape.sizes) {
      const Rates rates = RatesOf(shape, num_ranks, GetParam(), kRuns);
      EXPECT_EQ(rates.num_false + rates.num_missed + rates.num_wrong, 0) << rates.first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clean, ShapesTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Planted, ShapesTest, ::testing::Values(true));

Told Ask(const std::string& name, int planted) {
  for (const Shape& shape : Shapes()) {
    if (shape.name == name) return RunAndAsk(shape, 4, 1, planted);
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(Shapes, ADeviceThatIsThrottledEvenlyIsSlowInEverything) {
  const Told told = Ask("a device throttled evenly", 2);
  EXPECT_THAT(told.text, HasSubstr("in everything: \"forward\" (+1.1"));
  EXPECT_EQ(told.stats.straggler().parts_size(), 4);
  EXPECT_EQ(told.what_if.repairs(0).name(), "rank 2 (node0)'s excess in everything");
}

TEST(Shapes, WhatComesInBurstsIsSaidInTheMeanToo) {
  EXPECT_THAT(Ask("a checkpoint written beside the work", 0).text, HasSubstr("in the mean it works 1.1"));
}

TEST(Shapes, ARankThatWasLateInOneEventIsNotBlamedBesideOneThatIsSlow) {
  EXPECT_THAT(Ask("one rank compiles again, once", 2).what_if.blamed_ranks(), ElementsAre(2));
}

TEST(Shapes, WorkOfOneRankAloneIsNamed) {
  EXPECT_EQ(Ask("logging of one rank", 0).stats.straggler().measurement(), "checkpoint");
  EXPECT_EQ(Ask("a checkpoint of one rank", 0).what_if.repairs(0).name(),
            "rank 0 (node0)'s excess in \"checkpoint\"");
}

TEST(Shapes, NothingCanBeToldWithoutMostOfTheRanks) {
  EXPECT_THAT(Ask("one rank left statistics", -1).text, HasSubstr("cannot tell: nothing from ranks 1-3\n"));
}

}  // namespace
}  // namespace ott::shapes
