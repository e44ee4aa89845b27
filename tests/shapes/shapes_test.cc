// Verdicts about time of trainings of all shapes, planted and clean.

#include "gtest/gtest.h"
#include "ott/tests/shapes/simulated_training.h"

namespace ott::shapes {
namespace {

class ShapesTest : public ::testing::TestWithParam<bool> {};

TEST_P(ShapesTest, NameWhatIsPlantedAndNobodyElseAndStateWhatItCosts) {
  constexpr int kRuns = 4;
  for (const Shape& shape : Shapes()) {
    if (GetParam() && shape.cannot_be_told) continue;
    for (const int num_ranks : {2, 4, 8}) {
      if (num_ranks < shape.min_ranks) continue;
      const Rates rates = RatesOf(shape, num_ranks, GetParam(), kRuns);
      EXPECT_EQ(rates.num_false + rates.num_missed + rates.num_wrong, 0) << rates.first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clean, ShapesTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Planted, ShapesTest, ::testing::Values(true));

}  // namespace
}  // namespace ott::shapes
