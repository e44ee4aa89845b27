#include "ott/core/stopwatch/stopwatch.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// Moves only when a test says so.
std::atomic<uint64_t> now_ns{1};
void Pass(uint64_t milliseconds) { now_ns += milliseconds * 1'000'000; }

absl::Status NoDevice() { return absl::UnimplementedError("no device in this test"); }

std::atomic<int> num_synchronized{0};
absl::Status CountSynchronization() {
  ++num_synchronized;
  return absl::OkStatus();
}

Stopwatch::Environment EnvironmentWith(absl::Status (*synchronize_device)()) {
  Stopwatch::Environment environment{Clock([] { return now_ns.load(); })};
  environment.synchronize_device = synchronize_device;
  return environment;
}

class StopwatchTest : public ::testing::Test {
 protected:
  void Enable(const Stopwatch::Options& options = {}) {
    const absl::Status status = stopwatch_.Enable(options);
    ASSERT_TRUE(status.ok()) << status;
  }

  void Measure(std::string_view name, uint64_t milliseconds) {
    stopwatch_.Start(name);
    Pass(milliseconds);
    stopwatch_.End(name);
  }

  StopwatchStats Stats() const {
    StopwatchStats stats;
    stopwatch_.Stats(&stats);
    return stats;
  }

  Measurement Stats(const std::string& name) const {
    const StopwatchStats stats = Stats();
    for (const Measurement& measurement : stats.measurements()) {
      if (measurement.name() == name) return measurement;
    }
    return {};
  }

  static Stopwatch::Options LoggingMisuse() {
    Stopwatch::Options options;
    options.on_misuse = OnMisuse::kLogAndCount;
    return options;
  }

  Stopwatch stopwatch_{EnvironmentWith(&NoDevice)};
};

TEST_F(StopwatchTest, IgnoresEverythingUntilEnabled) {
  stopwatch_.Start("early");
  stopwatch_.End("never started");
  stopwatch_.FinishIter();
  stopwatch_.EndOneTime("never started");
  EXPECT_FALSE(stopwatch_.enabled());
  EXPECT_EQ(Stats().measurements_size(), 0);
  Enable();
  stopwatch_.FinishIter();
  EXPECT_TRUE(stopwatch_.enabled());
  EXPECT_EQ(Stats().measurements_size(), 0);
}

TEST_F(StopwatchTest, CountsIntervalsAndIterations) {
  Enable();
  Measure("a", 10);
  Measure("a", 30);
  stopwatch_.FinishIter();
  Measure("b", 5);
  stopwatch_.FinishIter();
  Measure("a", 20);
  stopwatch_.FinishIter();

  const StopwatchStats stats = Stats();
  EXPECT_EQ(stats.num_measured_iters(), 3);
  EXPECT_EQ(stats.iteration().count(), 3);
  EXPECT_DOUBLE_EQ(stats.iteration().total(), 0.065);
  ASSERT_EQ(stats.measurements_size(), 2);
  const Measurement a = stats.measurements(0);
  EXPECT_EQ(a.name(), "a");
  EXPECT_EQ(a.per_interval().count(), 3);
  EXPECT_DOUBLE_EQ(a.per_interval().total(), 0.060);
  EXPECT_DOUBLE_EQ(a.per_interval().mean(), 0.020);
  EXPECT_DOUBLE_EQ(a.per_interval().min(), 0.010);
  EXPECT_DOUBLE_EQ(a.per_interval().max(), 0.030);
  EXPECT_DOUBLE_EQ(a.per_interval().squared_deviations(), 2e-4);
  // Ran in two of the iterations, 40 ms and 20 ms.
  EXPECT_EQ(a.per_iteration().count(), 2);
  EXPECT_DOUBLE_EQ(a.per_iteration().mean(), 0.030);
  EXPECT_DOUBLE_EQ(a.per_iteration().max(), 0.040);
}

TEST_F(StopwatchTest, WarmUpIterationsAreNotCounted) {
  Stopwatch::Options options;
  options.num_warmup_iters = 2;
  Enable(options);
  for (const uint64_t duration : {100, 200, 7, 9}) {
    Measure("step", duration);
    stopwatch_.FinishIter();
  }
  EXPECT_EQ(Stats().num_warmup_iters(), 2);
  EXPECT_EQ(Stats().num_measured_iters(), 2);
  EXPECT_EQ(Stats("step").per_interval().count(), 2);
  EXPECT_DOUBLE_EQ(Stats("step").per_interval().total(), 0.016);
  EXPECT_EQ(Stats().iteration().count(), 2);
  EXPECT_DOUBLE_EQ(Stats().iteration().total(), 0.016);
}

TEST_F(StopwatchTest, ScopesMeasureAndNest) {
  Enable();
  for (int i = 0; i < 3; ++i) {
    const Stopwatch::Scope outer(stopwatch_, "outer");
    Pass(1);
    const Stopwatch::Scope inner(stopwatch_, "inner");
    Pass(2);
  }
  stopwatch_.FinishIter();
  EXPECT_DOUBLE_EQ(Stats("outer").per_interval().total(), 0.009);
  EXPECT_DOUBLE_EQ(Stats("inner").per_interval().total(), 0.006);
  EXPECT_EQ(Stats("inner").per_iteration().count(), 1);
}

TEST_F(StopwatchTest, AHandleServesSeveralStopwatches) {
  Stopwatch other{EnvironmentWith(&NoDevice)};
  Enable();
  ASSERT_TRUE(other.Enable({}).ok());
  Stopwatch::Measurement handle("shared");
  for (Stopwatch* stopwatch : {&stopwatch_, &other, &stopwatch_}) {
    stopwatch->Start(handle);
    Pass(1);
    stopwatch->End(handle);
  }
  EXPECT_EQ(Stats("shared").per_interval().count(), 2);
}

TEST_F(StopwatchTest, AMeasurementMayEndOnAnotherThread) {
  Enable();
  stopwatch_.Start("hand over");
  Pass(3);
  std::thread([this] { stopwatch_.End("hand over"); }).join();
  stopwatch_.FinishIter();
  EXPECT_DOUBLE_EQ(Stats("hand over").per_iteration().total(), 0.003);
}

TEST_F(StopwatchTest, ScopesOfOneNameAddUpOverThreads) {
  Enable();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int n = 0; n < 1000; ++n) const Stopwatch::Scope scope(stopwatch_, "work");
    });
  }
  for (int n = 0; n < 100; ++n) {
    StopwatchStats meanwhile;
    stopwatch_.Stats(&meanwhile);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Stats("work").per_interval().count(), 8000);
}

TEST_F(StopwatchTest, OneTimeMeasurementsIgnoreWarmUpAndShowThatTheyRun) {
  Stopwatch::Options options;
  options.num_warmup_iters = 10;
  Enable(options);
  stopwatch_.StartOneTime("load");
  Pass(50);
  stopwatch_.EndOneTime("load");
  stopwatch_.StartOneTime("train");
  Pass(20);
  stopwatch_.FinishIter();
  const StopwatchStats stats = Stats();
  ASSERT_EQ(stats.one_time_size(), 2);
  EXPECT_FALSE(stats.one_time(0).running());
  EXPECT_DOUBLE_EQ(stats.one_time(0).seconds(), 0.050);
  EXPECT_TRUE(stats.one_time(1).running());
  EXPECT_DOUBLE_EQ(stats.one_time(1).seconds(), 0.020);
  EXPECT_THAT(stopwatch_.Table(), ContainsRegex("train +20.00 ms +running"));
}

TEST_F(StopwatchTest, CollectiveMeasurementsAreMarked) {
  Stopwatch::Options options;
  options.collective_measurements = {"allreduce"};
  Enable(options);
  Measure("allreduce", 1);
  Measure("forward", 1);
  EXPECT_TRUE(Stats("allreduce").collective());
  EXPECT_FALSE(Stats("forward").collective());
}

TEST_F(StopwatchTest, PrintsEverySoManyMeasuredIterations) {
  std::vector<int64_t> printed;
  Stopwatch::Options options;
  options.num_warmup_iters = 1;
  options.print_every_n_iters = 2;
  options.print = [&printed](const Stopwatch& stopwatch) {
    StopwatchStats stats;
    stopwatch.Stats(&stats);
    printed.push_back(stats.num_measured_iters());
  };
  Enable(options);
  for (int i = 0; i < 6; ++i) stopwatch_.FinishIter();
  EXPECT_THAT(printed, ::testing::ElementsAre(2, 4));
}

TEST_F(StopwatchTest, SynchronizesTheDeviceAroundEachInterval) {
  Stopwatch stopwatch{EnvironmentWith(&CountSynchronization)};
  Stopwatch::Options options;
  options.device_timing = Stopwatch::DeviceTiming::kSynchronizeDevice;
  ASSERT_TRUE(stopwatch.Enable(options).ok());
  num_synchronized = 0;
  stopwatch.Start("a");
  EXPECT_EQ(num_synchronized, 1);
  stopwatch.End("a");
  EXPECT_EQ(num_synchronized, 2);
}

TEST_F(StopwatchTest, EnablingFailsWhereTheDeviceCannotBeSynchronized) {
  Stopwatch::Options options;
  options.device_timing = Stopwatch::DeviceTiming::kSynchronizeDevice;
  const absl::Status status = stopwatch_.Enable(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(stopwatch_.enabled());
  EXPECT_TRUE(stopwatch_.Enable({}).ok());
}

TEST_F(StopwatchTest, EnablingTwiceIsRefusedNamingBothPlaces) {
  Enable();
  const absl::Status status = stopwatch_.Enable({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("stopwatch_test.cc:[0-9]+.*stopwatch_test.cc:[0-9]+"));
}

TEST_F(StopwatchTest, NegativeNumbersAreRefused) {
  Stopwatch::Options options;
  options.num_warmup_iters = -1;
  EXPECT_EQ(stopwatch_.Enable(options).code(), absl::StatusCode::kInvalidArgument);
}

using StopwatchDeathTest = StopwatchTest;

TEST_F(StopwatchDeathTest, EndingWhatWasNotStartedAborts) {
  Enable();
  EXPECT_DEATH(stopwatch_.End("x"),
               "End\\(\"x\"\\) at .*stopwatch_test.cc:[0-9]+ on thread [0-9]+.*does not run");
}

TEST_F(StopwatchTest, MisuseIsLoggedAndCountedWhereAskedFor) {
  Enable(LoggingMisuse());
  ::testing::internal::CaptureStderr();
  stopwatch_.End("a");
  stopwatch_.Start("a");
  stopwatch_.Start("a");
  stopwatch_.FinishIter();
  stopwatch_.StartOneTime("once");
  stopwatch_.EndOneTime("once");
  stopwatch_.StartOneTime("once");
  stopwatch_.EndOneTime("once");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("End(\"a\")"), HasSubstr("Start(\"a\")"), HasSubstr("FinishIter()"),
                         HasSubstr("StartOneTime(\"once\")"), HasSubstr("EndOneTime(\"once\")")));
  EXPECT_EQ(Stats().num_misuses(), 5);
  EXPECT_EQ(Stats().num_measured_iters(), 0);
  EXPECT_THAT(stopwatch_.Table(), HasSubstr("refused as misuse: 5"));
}

TEST_F(StopwatchTest, FinishingAnIterationNamesAllThatRuns) {
  Enable(LoggingMisuse());
  ::testing::internal::CaptureStderr();
  stopwatch_.Start("started");
  {
    const Stopwatch::Scope scope(stopwatch_, "scoped");
    std::thread([this] { stopwatch_.FinishIter(); }).join();
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(ContainsRegex("\"started\", started at .*stopwatch_test.cc:[0-9]+ by thread [0-9]+"),
                    ContainsRegex("scope \"scoped\", begun at .*stopwatch_test.cc:[0-9]+ by thread [0-9]+")));
  EXPECT_EQ(Stats().num_measured_iters(), 0);
}

TEST_F(StopwatchTest, AnyNameIsAName) {
  Enable();
  for (const char* name : {"", "a/b", "../x", "\"quoted\"", "two\nlines", "größe", "%s%n"}) {
    Measure(name, 1);
    EXPECT_EQ(Stats(name).per_interval().count(), 1) << name;
  }
  EXPECT_THAT(stopwatch_.Table(), HasSubstr("two lines"));
  EXPECT_THAT(stopwatch_.Json(), HasSubstr("two\\nlines"));
}

TEST_F(StopwatchTest, ManyNamesAreFoundAgain) {
  Enable();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 500; ++i) Measure("name " + std::to_string(i), 1);
  }
  EXPECT_EQ(Stats().measurements_size(), 500);
  EXPECT_EQ(Stats("name 499").per_interval().count(), 2);
}

TEST_F(StopwatchTest, OptionsComeFromTheConfiguration) {
  StopwatchConfig config;
  config.set_num_warmup_iters(3);
  config.set_print_every_n_iters(50);
  config.set_device_sync(DEVICE_SYNC_DEVICE);
  config.add_collective_measurements("allreduce");
  const Stopwatch::Options options = Stopwatch::FromConfig(config);
  EXPECT_EQ(options.num_warmup_iters, 3);
  EXPECT_EQ(options.print_every_n_iters, 50);
  EXPECT_EQ(options.device_timing, Stopwatch::DeviceTiming::kSynchronizeDevice);
  EXPECT_THAT(options.collective_measurements, ::testing::ElementsAre("allreduce"));
}

TEST(Stopwatch, OfThisProcessIsReachedThroughTheMacro) {
  ASSERT_TRUE(Stopwatch::Get().Enable({}).ok());
  for (int i = 0; i < 3; ++i) {
    OTT_STOPWATCH_SCOPE("macro");
    OTT_STOPWATCH_SCOPE("inside");
  }
  StopwatchStats stats;
  Stopwatch::Get().Stats(&stats);
  ASSERT_EQ(stats.measurements_size(), 2);
  EXPECT_EQ(stats.measurements(0).name(), "macro");
  EXPECT_EQ(stats.measurements(0).per_interval().count(), 3);
}

}  // namespace
}  // namespace ott
