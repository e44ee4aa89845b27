// Tests what an interval does besides reading the host's clock: CPU usage, arrivals, a flight recorder.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/flight/flight_record.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "stopwatch_for_test.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(StopwatchTest, EnablingFailsWhereTheDeviceCannotBeSynchronized) {
  Stopwatch::Options options;
  options.device_sync = Stopwatch::DeviceSync::kDevice;
  const absl::Status status = stopwatch_.Enable(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(stopwatch_.enabled());
  EXPECT_TRUE(stopwatch_.Enable({}).ok());
}

TEST_F(StopwatchTest, AnIntervalEndsWhenTheDeviceIsSynchronized) {
  Stopwatch stopwatch(EnvironmentWith([]() -> absl::Status {
    Pass(7);
    return absl::OkStatus();
  }));
  Stopwatch::Options options;
  options.device_sync = Stopwatch::DeviceSync::kDevice;
  options.num_warmup_iters = 1;
  ASSERT_TRUE(stopwatch.Enable(options).ok());
  for (const bool is_warm_up : {true, false}) {
    const int64_t begin = Now();
    {
      const Stopwatch::Scope scope(stopwatch, "scope");
      Pass(1);
    }
    stopwatch.Start("calls");
    Pass(1);
    stopwatch.End("calls");
    EXPECT_EQ(Now() - begin, 2 * 15) << "warm-up is as long as what is measured";
    if (is_warm_up) stopwatch.FinishIter();
  }
  stopwatch.StartOneTime("load");
  Pass(1);
  stopwatch.EndOneTime("load");
  const StopwatchSnapshot snapshot = stopwatch.Snapshot();
  EXPECT_DOUBLE_EQ(snapshot.one_time.at(0).seconds, 0.008);
  ASSERT_EQ(snapshot.measurements.size(), 2u);
  for (const auto& measurement : snapshot.measurements)
    EXPECT_DOUBLE_EQ(measurement.per_interval.total(), 0.008) << measurement.name;
}

bool cpu_times_can_be_read = true;
// Two CPUs, of which the process keeps one busy, three quarters of that in user space.
absl::StatusOr<CpuTimes> HalfBusy() {
  if (!cpu_times_can_be_read) return absl::ResourceExhaustedError("too many open files");
  const double now = static_cast<double>(now_ns) * 1e-9;
  return CpuTimes{now, 2 * now, 0.75 * now, 0.25 * now, now};
}

TEST_F(StopwatchTest, CpuUsageIsThatOfTheIntervalsOfOneMeasurementThatCouldBeRead) {
  Pass(100'000);
  Stopwatch::Environment environment = EnvironmentWith(&NoDevice);
  environment.read_cpu_times = &HalfBusy;
  Stopwatch stopwatch(environment);
  Stopwatch::Options options;
  options.num_warmup_iters = 1;
  options.cpu_usage_measurement = "work";
  ASSERT_TRUE(stopwatch.Enable(options).ok());
  for (int i = 0; i < 4; ++i) {
    cpu_times_can_be_read = i != 2;
    stopwatch.Start("work");
    Pass(100);
    cpu_times_can_be_read = true;
    stopwatch.End("work");
    Pass(500);
    stopwatch.FinishIter();
  }
  StopwatchStats stats;
  stopwatch.Stats(&stats);
  EXPECT_EQ(stats.cpu_usage().measurement(), "work");
  EXPECT_NEAR(stats.cpu_usage().all_percent(), 50, 1e-6);
  EXPECT_NEAR(stats.cpu_usage().process_user_percent(), 75, 1e-6);
  EXPECT_NEAR(stats.cpu_usage().process_system_percent(), 25, 1e-6);
  EXPECT_NEAR(stats.cpu_usage().duration(), 0.2, 1e-9);
}

TEST_F(StopwatchTest, CpuUsageIsOfOneNameForGoodFromTheNextIntervalOn) {
  EXPECT_EQ(stopwatch_.SetCpuUsageMeasurement("a").code(), absl::StatusCode::kFailedPrecondition);
  Enable();
  Measure("a", 1);
  EXPECT_FALSE(Stats().has_cpu_usage());
  stopwatch_.Start("a");
  EXPECT_TRUE(stopwatch_.SetCpuUsageMeasurement("a").ok());
  EXPECT_TRUE(stopwatch_.SetCpuUsageMeasurement("a").ok());
  stopwatch_.End("a");
  EXPECT_EQ(Stats().cpu_usage().duration(), 0);
  for (const std::string name : {"b", "A"}) {
    const absl::Status other = stopwatch_.SetCpuUsageMeasurement(name);
    EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(other.message()), AllOf(HasSubstr("\"a\""), HasSubstr('"' + name + '"')));
  }
  Measure("a", 1);
  EXPECT_GT(Stats().cpu_usage().duration(), 0);
  EXPECT_LT(Stats().cpu_usage().duration(), 60);
}

TEST_F(StopwatchTest, ArrivalsAtCollectiveMeasurementsAreKeptUntilTaken) {
  Stopwatch::Options options;
  options.num_warmup_iters = 1;
  options.collective_measurements = {"allreduce"};
  options.arrivals_limit = 3;
  Enable(options);
  const uint64_t start = now_ns;
  for (int i = 0; i < 4; ++i) {
    Measure("forward", 10);
    Measure("allreduce", 1);
    if (i < 3) {
      const Stopwatch::Scope scope(stopwatch_, "allreduce");
      Pass(1);
    }
    stopwatch_.FinishIter();
  }
  const std::vector<StopwatchArrivals> taken = stopwatch_.TakeArrivals();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].name, "allreduce");
  // Three at most, of whole iterations.
  std::vector<std::pair<int64_t, int64_t>> arrivals;
  for (const StopwatchArrivals::Arrival& arrival : taken[0].arrivals)
    arrivals.emplace_back(arrival.iteration, (arrival.nanoseconds - static_cast<int64_t>(start)) / 1'000'000);
  EXPECT_THAT(arrivals, ElementsAre(std::pair(2, 34), std::pair(2, 35), std::pair(3, 46)));
  EXPECT_THAT(stopwatch_.TakeArrivals(), ElementsAre());
  // The latest arrivals are kept where one iteration has more.
  for (int i = 0; i < 5; ++i) Measure("allreduce", 1);
  const std::vector<StopwatchArrivals> latest = stopwatch_.TakeArrivals();
  ASSERT_EQ(latest[0].arrivals.size(), 2u);
  for (const StopwatchArrivals::Arrival& arrival : latest[0].arrivals) EXPECT_EQ(arrival.inside, 1'000'000);
  // An arrival that was taken or dropped before its collective ended changes no other one.
  for (const bool is_taken : {true, false}) {
    stopwatch_.Start("allreduce");
    if (is_taken) stopwatch_.TakeArrivals();
    for (int i = 0; i < 3; ++i) const Stopwatch::Scope scope(stopwatch_, "allreduce");
    Pass(9);
    stopwatch_.End("allreduce");
    for (const StopwatchArrivals& of : stopwatch_.TakeArrivals()) {
      for (const StopwatchArrivals::Arrival& arrival : of.arrivals) EXPECT_EQ(arrival.inside, 0);
    }
  }
}

TEST_F(StopwatchTest, NobodyMeetsAtWhatIsSaidToBeNoCollective) {
  Stopwatch::Options options;
  options.collective_measurements = {"dist.*"};
  options.arrivals_limit = 8;
  Enable(options);
  stopwatch_.SetOperation("dist.send", FlightOperation::Send(1));
  stopwatch_.SetOperation("dist.recv", FlightOperation::Receive(1));
  stopwatch_.SetOperation("dist.other", FlightOperation());
  stopwatch_.SetOperation("dist.all_reduce", FlightOperation::Collective());
  for (const char* const name : {"dist.send", "dist.recv", "dist.other", "dist.all_reduce"}) Measure(name, 1);
  const std::vector<StopwatchArrivals> taken = stopwatch_.TakeArrivals();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].name, "dist.all_reduce");
}

TEST_F(StopwatchTest, TheFirstIterationDoesNotBeginWhereItIsSaidWhatRanksWaitFor) {
  Enable();
  stopwatch_.SetOperation("allreduce", FlightOperation());
  EXPECT_EQ(Stats().measurements_size(), 0);
  Pass(1000);
  Measure("allreduce", 2);
  stopwatch_.FinishIter();
  EXPECT_DOUBLE_EQ(stopwatch_.Snapshot().iteration.total(), 0.002);
}

TEST_F(StopwatchTest, IntervalsAndIterationsAreLeftInAFlightRecorder) {
  const std::string path = ::testing::TempDir() + "/flight";
  std::filesystem::remove(path);
  EXPECT_EQ(stopwatch_.RecordFlight(nullptr).code(), absl::StatusCode::kFailedPrecondition);
  Stopwatch::Options options;
  options.collective_measurements = {"allreduce"};
  options.sampled_measurements = {"module *"};
  Enable(options);
  Measure("before", 1);
  ASSERT_TRUE(
      stopwatch_.RecordFlight(*FlightRecorder::Create({path, 1, 4, "node"}, stopwatch_.clock())).ok());
  FlightOperation operation;
  operation.role = FlightRole::kCollective;
  operation.group = "dp0";
  operation.ranks = {1, 3};
  operation.size = 4096;
  stopwatch_.SetOperation("gradients", operation);
  Measure("before", 1);
  Measure("gradients", 1);
  Measure("allreduce", 1);
  Measure("module of many", 1);
  stopwatch_.FinishIter();
  stopwatch_.StartOneTime("load");
  {
    const Stopwatch::Scope scope(stopwatch_, "gradients");
    Pass(1);
    const FlightRecord record = *ReadFlightRecord(path);
    EXPECT_EQ(record.iteration, 1);
    ASSERT_EQ(record.groups.size(), 2u);
    EXPECT_EQ(record.groups[0].name, "dp0");
    EXPECT_EQ(record.groups[0].entered, 2);
    EXPECT_EQ(record.groups[0].completed, 1);
    EXPECT_EQ(record.groups[1].name, "world");
    EXPECT_EQ(record.groups[1].completed, 1);
    std::vector<std::string> running;
    for (const FlightRecord::Measurement& measurement : record.measurements) {
      if (measurement.runs) running.push_back(measurement.name);
    }
    EXPECT_THAT(running, ElementsAre("gradients", "load"));
    // Two ends of three measurements, none of the sampled one, one iteration, and what runs.
    EXPECT_EQ(record.events.size(), 9u);
  }
  stopwatch_.EndOneTime("load");
  const size_t num_events = ReadFlightRecord(path)->events.size();
  stopwatch_.Disable();
  Enable(options);
  Measure("gradients", 1);
  stopwatch_.FinishIter();
  EXPECT_EQ(ReadFlightRecord(path)->events.size(), num_events);
}

}  // namespace
}  // namespace ott
