#include "ott/core/stopwatch/op_measurements.h"

#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott {
namespace {

TEST(MeasureOps, OpsAreInTheTableOfTheStopwatchWithoutAMacroOfTheirOwn) {
  OpRanges::Options options;
  MeasureOps(options);
  ASSERT_TRUE(OpRanges::Get().Enable(options).ok());
  {
    // While the stopwatch is off.
    const OpRange op("linear");
    ASSERT_TRUE(Stopwatch::Get().Enable({}).ok());
  }
  for (int i = 0; i < 3; ++i) {
    OTT_STOPWATCH_SCOPE("forward");
    const OpRange op("linear");
    const OpRange inner("matmul");
  }
  Stopwatch::Get().FinishIter();
  const StopwatchSnapshot snapshot = Stopwatch::Get().Snapshot();
  ASSERT_EQ(snapshot.measurements.size(), 3u);
  for (const StopwatchSnapshot::Measurement& measurement : snapshot.measurements)
    EXPECT_EQ(measurement.per_interval.count(), 3) << measurement.name;
  EXPECT_EQ(snapshot.measurements[1].name, "linear");
  EXPECT_EQ(snapshot.scopes.at(0).inner.at(0).inner.at(0).name, "matmul");
  Stopwatch::Get().Disable();
  OpRanges::Get().Disable();
}

}  // namespace
}  // namespace ott
