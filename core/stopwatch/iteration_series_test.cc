#include "ott/core/stopwatch/iteration_series.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(IterationSeries, IsKeptInFullUpToTheLimit) {
  IterationSeries series(4);
  for (int i = 0; i < 4; ++i) series.Append(static_cast<float>(i));
  EXPECT_EQ(series.stride(), 1);
  EXPECT_THAT(series.values(), ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(IterationSeries, IsThinnedOutEvenlyBeyondTheLimit) {
  for (const size_t limit : {2, 3, 4, 5, 8}) {
    IterationSeries series(limit);
    for (int i = 0; i < 1000; ++i) {
      series.Append(static_cast<float>(i));
      ASSERT_LE(series.values().size(), limit);
      ASSERT_EQ(series.values().size(), static_cast<size_t>(i / series.stride() + 1));
      for (size_t k = 0; k < series.values().size(); ++k) {
        ASSERT_EQ(series.values()[k], static_cast<float>(k * static_cast<size_t>(series.stride())));
      }
    }
  }
}

TEST(IterationSeries, NothingIsKeptWithALimitOfZero) {
  IterationSeries series(0);
  series.Append(1);
  EXPECT_TRUE(series.values().empty());
}

}  // namespace
}  // namespace ott
