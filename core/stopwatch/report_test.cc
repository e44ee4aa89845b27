#include "ott/core/stopwatch/report.h"

#include <string>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

DurationStatistics Of(const std::vector<double>& seconds) {
  DurationStatistics result;
  for (const double duration : seconds) result.AddSeconds(duration);
  return result;
}

StopwatchSnapshot::Measurement MeasurementOf(const std::string& name, const std::vector<double>& seconds) {
  StopwatchSnapshot::Measurement measurement;
  measurement.name = name;
  measurement.per_interval = Of(seconds);
  measurement.per_iteration = Of(seconds);
  return measurement;
}

// Four iterations of 10 ms; "rare" ran in one of them.
StopwatchSnapshot FourIterations() {
  StopwatchSnapshot snapshot;
  snapshot.num_warmup_iters = 5;
  snapshot.num_warmup_iters_done = 5;
  snapshot.num_measured_iters = 4;
  snapshot.iteration = Of({0.010, 0.010, 0.010, 0.010});
  snapshot.measurements = {MeasurementOf("rare", {0.004}),
                           MeasurementOf("often", {0.005, 0.005, 0.005, 0.005})};
  return snapshot;
}

TEST(FormatTable, AveragesDivideByAllMeasuredIterationsAndTheLargestShareComesFirst) {
  StopwatchSnapshot snapshot = FourIterations();
  snapshot.measurements[0].name = "größe\nzwei";
  snapshot.measurements[0].collective = true;
  EXPECT_EQ(FormatTable(snapshot),
            R"(Stopwatch: 4 measured iterations after 5 of warm-up, 10.00 ms each

per iteration               share   average  ran in      mean    stddev       min       p50       p90       p99       max
often                      50.0 %  5.000 ms       4  5.000 ms  0.000 s   5.000 ms  5.000 ms  5.000 ms  5.000 ms  5.000 ms
größe\nzwei (collective)   10.0 %  1.000 ms       1  4.000 ms  0.000 s   4.000 ms  4.000 ms  4.000 ms  4.000 ms  4.000 ms
whole iteration           100.0 %  10.00 ms       4  10.00 ms  0.000 s   10.00 ms  10.00 ms  10.00 ms  10.00 ms  10.00 ms

per interval              intervals     total      mean    stddev       min       p50       p90       p99       max
often                             4  20.00 ms  5.000 ms  0.000 s   5.000 ms  5.000 ms  5.000 ms  5.000 ms  5.000 ms
größe\nzwei (collective)          1  4.000 ms  4.000 ms  0.000 s   4.000 ms  4.000 ms  4.000 ms  4.000 ms  4.000 ms

Observer cost: 5 intervals of 0.000 s  are 0.0000 % of the measured time
)");
}

TEST(FormatTable, NestedScopesAreATreeWithInclusiveAndExclusiveTime) {
  StopwatchSnapshot snapshot = FourIterations();
  StopwatchSnapshot::Scope conv = {"conv", 8, 0.012, 0.012, {}};
  StopwatchSnapshot::Scope relu = {"relu", 8, 0.001, 0.001, {}};
  snapshot.scopes = {{"data", 4, 0.002, 0.002, {}}, {"forward", 4, 0.016, 0.003, {relu, conv}}};
  EXPECT_THAT(FormatTable(snapshot), HasSubstr(
                                         R"(
nested scopes   share  intervals  inclusive  exclusive  incl./iteration  excl./iteration
forward        40.0 %          4   16.00 ms   3.000 ms         4.000 ms         750.0 us
  conv         30.0 %          8   12.00 ms   12.00 ms         3.000 ms         3.000 ms
  relu          2.5 %          8   1.000 ms   1.000 ms         250.0 us         250.0 us
data            5.0 %          4   2.000 ms   2.000 ms         500.0 us         500.0 us
)"));
  snapshot.scopes = {{"data", 4, 0.002, 0.002, {}}};
  EXPECT_THAT(FormatTable(snapshot), Not(HasSubstr("nested")));
}

TEST(FormatTable, TellsWhatWasLeftOutAndRefused) {
  StopwatchSnapshot snapshot = FourIterations();
  snapshot.misuses = {{"End(\"x\") without Start", 2}};
  snapshot.num_pending_device_intervals = 3;
  snapshot.observer_seconds_per_interval = 40e-9;
  snapshot.iteration_series = IterationSeries(2);
  for (int i = 0; i < 4; ++i) snapshot.iteration_series.Append(0.01f);
  const std::string table = FormatTable(snapshot);
  EXPECT_THAT(table, HasSubstr("Observer cost: 5 intervals of 40.00 ns are 0.0005 % of the measured time\n"));
  EXPECT_THAT(table, HasSubstr("Times of single iterations: one in 2 was kept\n"));
  EXPECT_THAT(table, HasSubstr("Intervals that the device has not finished: 3\n"));
  EXPECT_THAT(table, HasSubstr("Refused as misuse, and missing above: End(\"x\") without Start, 2 times\n"));
}

TEST(FormatTable, DeviceCpuAndOneTimeSectionsAppearWhereMeasured) {
  StopwatchSnapshot snapshot = FourIterations();
  snapshot.measurements[1].device_per_interval = Of({0.002, 0.004});
  snapshot.cpu_usage_measurement = "often";
  snapshot.cpu_usage.Add({0, 0, 0, 0, 0}, {1, 4, 0.75, 0.25, 2});
  snapshot.one_time = {{"load", 1.25, false}, {"train", 3.5, true}};
  const std::string table = FormatTable(snapshot);
  EXPECT_THAT(table, ContainsRegex("per interval, on the device .*\noften +2  6.000 ms  3.000 ms"));
  EXPECT_THAT(table, ContainsRegex("CPU usage +all CPUs +process user +process system +watched\nduring often "
                                   "+25.0 % +37.5 % +12.5 % +2.000 s"));
  EXPECT_THAT(table, ContainsRegex("one-time +duration *\nload +1.250 s\ntrain +3.500 s +running\n"));
}

TEST(FormatTable, IsShortBeforeAnythingWasMeasured) {
  StopwatchSnapshot snapshot;
  EXPECT_EQ(FormatTable(snapshot), "Stopwatch: 0 measured iterations\n");
  snapshot.cpu_usage_measurement = "forward";
  EXPECT_THAT(FormatTable(snapshot), AllOf(Not(HasSubstr("0.0 %")), HasSubstr("never ran")));
  snapshot.measurements = {MeasurementOf("forward", {1})};
  EXPECT_THAT(FormatTable(snapshot), HasSubstr("are unknown of the measured time"));
  snapshot.num_warmup_iters = 5;
  snapshot.num_warmup_iters_done = 2;
  EXPECT_THAT(FormatTable(snapshot),
              StartsWith("Stopwatch: 0 measured iterations; 2 of 5 of warm-up are done\n"));
}

TEST(FormatCsv, HasARowForEachMeasurementAndKindWithTheQuantilesThatAreKnown) {
  StopwatchSnapshot snapshot = FourIterations();
  snapshot.measurements[0].name = "a,\"b\"\nc";
  snapshot.measurements[0].per_interval = DurationStatistics::FromSums(1, 1000, 1000000, 1000, 1000);
  std::vector<double> seconds;
  for (int i = 1; i <= 100; ++i) seconds.push_back(1e-3 * i);
  const DurationStatistics on_device = Of(seconds);
  snapshot.measurements[1].collective = true;
  snapshot.measurements[1].device_per_interval = on_device;
  EXPECT_EQ(FormatCsv(snapshot),
            absl::StrFormat(
                "kind,name,collective,count,total,mean,stddev,min,p50,p90,p99,max\r\n"
                "iteration,,false,4,0.04,0.01,0,0.01,0.01,0.01,0.01,0.01\r\n"
                "per_iteration,\"a,\"\"b\"\"\nc\",false,1,0.004,0.004,0,0.004,0.004,0.004,0.004,0.004\r\n"
                "per_interval,\"a,\"\"b\"\"\nc\",false,1,1e-09,1e-09,0,1e-09,,,,1e-09\r\n"
                "per_iteration,often,true,4,0.02,0.005,0,0.005,0.005,0.005,0.005,0.005\r\n"
                "per_interval,often,true,4,0.02,0.005,0,0.005,0.005,0.005,0.005,0.005\r\n"
                "device_per_interval,often,true,100,5.05,0.0505,%.9g,0.001,%.9g,%.9g,%.9g,0.1\r\n",
                on_device.standard_deviation(), *on_device.Quantile(0.5), *on_device.Quantile(0.9),
                *on_device.Quantile(0.99)));
}

}  // namespace
}  // namespace ott
