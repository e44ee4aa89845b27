#include "ott/core/stopwatch/iteration_series.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(IterationSeries, IsThinnedOutEvenlyBeyondTheLimit) {
  for (const size_t limit : {2, 3, 4, 5, 8}) {
    IterationSeries series(limit);
    for (int i = 0; i < 1000; ++i) {
      series.Append(static_cast<float>(i));
      ASSERT_LE(series.values().size(), limit);
      // No more than needed are left out.
      ASSERT_TRUE(series.stride() == 1 || 2 * i / series.stride() >= static_cast<int64_t>(limit));
      ASSERT_EQ(series.values().size(), static_cast<size_t>(i / series.stride() + 1));
      for (size_t k = 0; k < series.values().size(); ++k)
        ASSERT_EQ(series.values()[k], static_cast<float>(k * static_cast<size_t>(series.stride())));
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
