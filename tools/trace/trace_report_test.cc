#include "tools/trace/trace_report.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/events/event_recorder.h"
#include "tools/trace/traces_for_test.h"

namespace ott::trace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kStream = EventRecorder::kFirstTrack;

TraceEvent StepForTest(int number, int64_t start) {
  static const std::string kNames[] = {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"};
  TraceEvent event = SliceForTest(kNames[number], start, 1000);
  event.category = "step";
  return event;
}

TraceReport Report(const std::vector<TraceEvent>& events) {
  Trace trace;
  trace.tracks.push_back({0, kStream, "GPU 0, stream 7", 0});
  trace.events = events;
  TraceReport report;
  report.Add(trace);
  return report;
}

TEST(TraceReport, TreeHasInclusiveAndExclusiveTimes) {
  const std::string tree =
      Report({StepForTest(1, 0), SliceForTest("forward", 100, 400), SliceForTest("matmul", 200, 100),
              SliceForTest("matmul", 300, 50), SliceForTest("backward", 500, 300), StepForTest(2, 1000)})
          .Tree(0);
  EXPECT_EQ(tree,
            "range           share  count  inclusive  exclusive    mean  longest\n"
            "ProfilerStep  100.0 %      2       2 us     1.3 us    1 us     1 us\n"
            "  forward      20.0 %      1     400 ns     250 ns  400 ns   400 ns\n"
            "    matmul      7.5 %      2     150 ns     150 ns   75 ns   100 ns\n"
            "  backward     15.0 %      1     300 ns     300 ns  300 ns   300 ns\n");
}

TEST(TraceReport, OperationsOfOneNameAreOneRange) {
  std::vector<TraceEvent> events = {SliceForTest("linear, seq = 12, sizes = [[32, 128], []]", 0, 10),
                                    SliceForTest("linear, sizes = [[2]]", 10, 10),
                                    SliceForTest("linear", 20, 10)};
  for (TraceEvent& event : events) event.category = "op";
  EXPECT_THAT(Report(events).Tree(0), HasSubstr("\nlinear  100.0 %      3"));
}

TEST(TraceReport, SmallRangesOfTheTreeAreCounted) {
  const std::string tree = Report({SliceForTest("large", 0, 1000), SliceForTest("small", 0, 1)}).Tree(0.01);
  EXPECT_THAT(tree, Not(HasSubstr("small")));
  EXPECT_THAT(tree, HasSubstr("1 ranges below 1 % are left out"));
}

TEST(TraceReport, SlicesThatOverlapStandBesideTheOthers) {
  TraceEvent overlapping = SliceForTest("overlapping", 50, 100);
  overlapping.type = TraceEvent::Type::kOverlappingSlice;
  const std::string tree =
      Report({SliceForTest("outer", 0, 100), overlapping, SliceForTest("inner", 60, 10)}).Tree(0);
  EXPECT_THAT(tree, HasSubstr("\noverlapping"));
  EXPECT_THAT(tree, HasSubstr("\n  inner"));
  EXPECT_THAT(tree, HasSubstr("100 ns      90 ns"));
}

TEST(TraceReport, TopIsByTimeOfTheirOwn) {
  const std::string top = Report({SliceForTest("outer", 0, 1000), SliceForTest("a", 0, 300),
                                  SliceForTest("b", 300, 600), SliceForTest("a", 900, 100)})
                              .Top(2);
  EXPECT_EQ(top,
            "range   share  count  exclusive  inclusive    mean  longest\n"
            "b      60.0 %      1     600 ns     600 ns  600 ns   600 ns\n"
            "a      40.0 %      2     400 ns     400 ns  200 ns   300 ns\n");
}

TEST(TraceReport, GapsAreTimesInWhichNoDeviceWasActive) {
  // Activities at 100-200, 150-300 on another stream, 500-600, 700-1000.
  const std::string gaps =
      Report({StepForTest(1, 0), SliceForTest("data", 250, 150), SliceForTest("launch", 450, 100),
              SliceForTest("gemm", 100, 100, kStream), SliceForTest("gemm", 500, 100, kStream),
              SliceForTest("gemm", 700, 300, kStream), SliceForTest("copy", 150, 150, kStream + 1)})
          .Gaps();
  EXPECT_EQ(gaps,
            "devices busy: 60.0 % of 1 us in 1 traces\n\n"
            "host was in    share  gaps   total    mean  longest\n"
            "ProfilerStep  15.0 %     2  150 ns   75 ns   100 ns\n"
            "data          10.0 %     1  100 ns  100 ns   100 ns\n"
            "launch         5.0 %     1   50 ns   50 ns    50 ns\n");
}

TEST(TraceReport, GapsOutsideOfRangesAreShownToo) {
  const std::string gaps = Report({SliceForTest("step", 0, 150), SliceForTest("a", 100, 10, kStream),
                                   SliceForTest("b", 200, 10, kStream)})
                               .Gaps();
  EXPECT_THAT(gaps, HasSubstr("(no range)   23.8 %"));
  EXPECT_THAT(gaps, HasSubstr("step         19.0 %"));
}

TEST(TraceReport, WithoutDevicesThereAreNoGaps) {
  EXPECT_THAT(Report({SliceForTest("a", 0, 1)}).Gaps(), IsEmpty());
}

}  // namespace
}  // namespace ott::trace
