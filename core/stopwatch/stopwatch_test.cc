#include "ott/core/stopwatch/stopwatch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "stopwatch_for_test.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

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

// A thread that lives on between what it does.
class Worker {
 public:
  ~Worker() {
    Run(nullptr);
    thread_.join();
  }
  void Run(std::function<void()> work) {
    std::unique_lock<std::mutex> lock(mutex_);
    work_ = std::move(work);
    has_work_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !has_work_; });
  }

 private:
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (bool goes_on = true; goes_on;) {
      changed_.wait(lock, [this] { return has_work_; });
      goes_on = work_ != nullptr;
      if (goes_on) work_();
      has_work_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool has_work_ = false;
  std::thread thread_{[this] { Loop(); }};
};

// Holds the milliseconds of each interval that was measured, by iteration after the warm-up.
using Intervals = std::vector<std::vector<double>>;

void ExpectTimes(const DurationStatistics& found, const std::vector<double>& milliseconds) {
  DurationStatistics expected;
  for (const double duration : milliseconds) expected.AddSeconds(1e-3 * duration);
  EXPECT_EQ(found.count(), expected.count());
  EXPECT_NEAR(found.total(), expected.total(), 1e-12);
  EXPECT_NEAR(found.squared_deviations(), expected.squared_deviations(), 1e-12);
  EXPECT_EQ(found.min(), expected.min());
  EXPECT_EQ(found.max(), expected.max());
}

TEST(Stopwatch, AnySequenceIsCountedByIntervalAndByIteration) {
  std::mt19937 random(1);
  Worker worker;
  for (int trial = 0; trial < 60; ++trial) {
    Stopwatch stopwatch{EnvironmentWith(&NoDevice)};
    Stopwatch::Options options;
    options.num_warmup_iters = static_cast<int64_t>(random() % 3);
    ASSERT_TRUE(stopwatch.Enable(options).ok());
    std::map<std::string, Intervals> expected;
    std::vector<double> iterations;
    double last_end = -1;
    const auto now = [] { return 1e-6 * static_cast<double>(now_ns.load()); };
    const size_t num_iterations = 1 + random() % 7;
    for (size_t iteration = 0; iteration < num_iterations; ++iteration) {
      for (uint32_t left = last_end < 0 ? 1 + random() % 6 : random() % 7; left > 0; --left) {
        const std::string outer(1, static_cast<char>('a' + random() % 3));
        const std::string inner(1, static_cast<char>('d' + random() % 2));
        const bool nests = random() % 2 == 0, is_called = random() % 3 == 0;
        const uint64_t before = 1 + random() % 3, inside = random() % 3;
        const auto measure = [&] {
          if (last_end < 0) last_end = now();
          if (is_called) {
            stopwatch.Start("called");
            Pass(before);
            stopwatch.End("called");
            return;
          }
          const Stopwatch::Scope scope(stopwatch, outer);
          Pass(before);
          if (!nests) return;
          const Stopwatch::Scope nested(stopwatch, inner);
          Pass(inside);
        };
        if (random() % 2 == 0) {
          measure();
        } else {
          worker.Run(measure);
        }
        const auto add = [&](const std::string& name, uint64_t milliseconds) {
          expected[name].resize(num_iterations);
          expected[name][iteration].push_back(static_cast<double>(milliseconds));
        };
        add(is_called ? "called" : outer, before + (!is_called && nests ? inside : 0));
        if (!is_called && nests) add(inner, inside);
      }
      stopwatch.FinishIter();
      iterations.push_back(now() - last_end);
      last_end = now();
    }
    const StopwatchSnapshot snapshot = stopwatch.Snapshot();
    const auto first = static_cast<size_t>(options.num_warmup_iters);
    const size_t num_measured = num_iterations > first ? num_iterations - first : 0;
    EXPECT_EQ(snapshot.num_warmup_iters, options.num_warmup_iters);
    EXPECT_EQ(snapshot.num_warmup_iters_done, std::min(first, num_iterations));
    EXPECT_EQ(snapshot.num_measured_iters, num_measured);
    iterations.erase(iterations.begin(), iterations.end() - static_cast<std::ptrdiff_t>(num_measured));
    ExpectTimes(snapshot.iteration, iterations);
    EXPECT_EQ(snapshot.measurements.size(), expected.size());
    for (const StopwatchSnapshot::Measurement& measurement : snapshot.measurements) {
      std::vector<double> intervals, sums, series;
      for (size_t iteration = first; iteration < num_iterations; ++iteration) {
        const std::vector<double>& of_iteration = expected[measurement.name][iteration];
        intervals.insert(intervals.end(), of_iteration.begin(), of_iteration.end());
        series.push_back(std::accumulate(of_iteration.begin(), of_iteration.end(), 0.0));
        if (!of_iteration.empty()) sums.push_back(series.back());
      }
      ExpectTimes(measurement.per_interval, intervals);
      ExpectTimes(measurement.per_iteration, sums);
      ASSERT_EQ(measurement.series.values().size(), series.size());
      for (size_t i = 0; i < series.size(); ++i) {
        EXPECT_NEAR(measurement.series.values()[i], 1e-3 * series[i], 1e-7);
      }
    }
  }
}

TEST_F(StopwatchTest, CountsAndAveragesHaveCallsOfTheirOwn) {
  EXPECT_FALSE(stopwatch_.enabled());
  EXPECT_EQ(stopwatch_.num_measured_iters(), 0);
  EXPECT_EQ(stopwatch_.MeanSecondsPerInterval("forward"), std::nullopt);
  Stopwatch::Options options;
  options.num_warmup_iters = 1;
  Enable(options);
  EXPECT_TRUE(stopwatch_.enabled());
  Measure("forward", 1000);
  stopwatch_.FinishIter();
  EXPECT_EQ(stopwatch_.num_measured_iters(), 0);
  EXPECT_EQ(stopwatch_.MeanSecondsPerIteration("forward"), std::nullopt);
  for (const uint64_t milliseconds : {10, 30, 20, 40}) {
    Measure("forward", milliseconds);
    if (milliseconds >= 30) stopwatch_.FinishIter();
  }
  EXPECT_EQ(stopwatch_.num_measured_iters(), 2);
  EXPECT_DOUBLE_EQ(*stopwatch_.MeanSecondsPerInterval("forward"), 0.025);
  EXPECT_DOUBLE_EQ(*stopwatch_.MeanSecondsPerIteration("forward"), 0.05);
  EXPECT_EQ(stopwatch_.MeanSecondsPerInterval("backward"), std::nullopt);
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
  options.collective_measurements = {"allreduce", "dist.*"};
  Enable(options);
  Measure("allreduce", 1);
  Measure("dist.broadcast", 1);
  Measure("forward", 1);
  EXPECT_TRUE(Stats("allreduce").collective());
  EXPECT_TRUE(Stats("dist.broadcast").collective());
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
  EXPECT_THAT(printed, ElementsAre(2, 4));
}

TEST_F(StopwatchTest, EnablingTwiceIsRefusedNamingBothPlaces) {
  ASSERT_TRUE(stopwatch_.Enable({}).ok());
  const absl::Status status = stopwatch_.Enable({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("stopwatch_test.cc:[0-9]+.*stopwatch_test.cc:[0-9]+"));
}

TEST_F(StopwatchTest, NumbersOutOfRangeAreRefused) {
  Stopwatch::Options options;
  const auto refused = [&](int64_t num_warmup_iters, int64_t print_every, size_t series_limit) {
    options.num_warmup_iters = num_warmup_iters;
    options.print_every_n_iters = print_every;
    options.series_limit = series_limit;
    EXPECT_THAT(
        std::string(stopwatch_.Enable(options).message()),
        HasSubstr(absl::StrCat("num_warmup_iters ", num_warmup_iters, " and print_every_n_iters ",
                               print_every, " must not be negative, and series_limit ", series_limit,
                               " must be 0, or at least 2 and at most ", Stopwatch::kMaxSeriesLimit)));
  };
  refused(-1, 0, 0);
  refused(3, -2, 4);
  refused(0, 5, 1);
  refused(0, 0, Stopwatch::kMaxSeriesLimit + 1);
  StopwatchConfig config;
  config.set_arrivals_limit(-5);
  EXPECT_THAT(std::string(stopwatch_.Enable(Stopwatch::FromConfig(config)).message()),
              HasSubstr("arrivals_limit -5"));
}

TEST_F(StopwatchTest, WhatAProfilerRecordedBeforeIsMeasuredAsEverythingElse) {
  EventRecorder recorder(Clock::Steady());
  recorder.Open();
  stopwatch_.RecordInto(&recorder);
  Measure("allreduce", 1);
  std::optional<Stopwatch::Scope> open;
  open.emplace(stopwatch_, "open");
  stopwatch_.RecordInto(nullptr);
  Pass(1000);

  Stopwatch::Options options;
  options.collective_measurements = {"allreduce"};
  Enable(options);
  open.reset();
  Measure("allreduce", 2);
  stopwatch_.FinishIter();
  const StopwatchSnapshot snapshot = stopwatch_.Snapshot();
  EXPECT_DOUBLE_EQ(snapshot.iteration.total(), 0.002);
  EXPECT_TRUE(snapshot.measurements[0].collective);
  EXPECT_DOUBLE_EQ(snapshot.measurements[0].per_interval.total(), 0.002);
  EXPECT_EQ(snapshot.measurements[0].series.values().size(), 1u);
  EXPECT_EQ(snapshot.measurements[1].per_interval.count(), 0);
}

TEST_F(StopwatchTest, EndingWhatWasNotStartedAbortsWhereAskedTo) {
  Stopwatch::Options options;
  options.on_misuse = OnMisuse::kAbort;
  Enable(options);
  EXPECT_DEATH(stopwatch_.End("x"),
               "End\\(\"x\"\\) at .*stopwatch_test.cc:[0-9]+ on thread [0-9]+.*does not run");
}

TEST_F(StopwatchTest, MisuseIsLoggedAndCountedByKind) {
  Enable();
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
  EXPECT_THAT(Misuses(),
              ElementsAre("End(\"a\") without Start", "Start(\"a\") while it runs",
                          "FinishIter() while \"a\" runs, so that no iteration counts",
                          "StartOneTime(\"once\") again", "EndOneTime(\"once\") without StartOneTime"));
  EXPECT_EQ(Stats().num_measured_iters(), 0);
  EXPECT_THAT(stopwatch_.Table(), HasSubstr("missing above: End(\"a\") without Start, 1 time\n"));
}

TEST_F(StopwatchTest, FinishingAnIterationNamesAllThatRuns) {
  Enable();
  ::testing::internal::CaptureStderr();
  stopwatch_.Start("started");
  {
    const Stopwatch::Scope scope(stopwatch_, "scoped");
    std::thread([this] { stopwatch_.FinishIter(); }).join();
  }
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(ContainsRegex("\"started\", started at .*stopwatch_test.cc:[0-9]+ by thread [0-9]+"),
            ContainsRegex("scope \"scoped\", started at .*stopwatch_test.cc:[0-9]+ by thread [0-9]+")));
  EXPECT_EQ(Stats().num_measured_iters(), 0);
}

TEST_F(StopwatchTest, AMeasurementThatNeverEndsIsNamedInTheTableOnce) {
  Enable();
  stopwatch_.Start("forward");
  for (int i = 0; i < 100; ++i) stopwatch_.FinishIter();
  const std::string table = stopwatch_.Table();
  EXPECT_THAT(table,
              AllOf(HasSubstr("Stopwatch: 0 measured iterations\n"),
                    HasSubstr("missing above: FinishIter() while \"forward\" runs, so that no iteration "
                              "counts, 100 times\n")));
  EXPECT_EQ(table.find("FinishIter()"), table.rfind("FinishIter()"));
}

TEST_F(StopwatchTest, OfManyThatRunTheFirstAreNamed) {
  Enable();
  for (int i = 0; i < 1000; ++i) stopwatch_.Start(std::to_string(i));
  ::testing::internal::CaptureStderr();
  stopwatch_.FinishIter();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("\"19\", started at"), HasSubstr("\n  and 980 more\n")));
}

TEST_F(StopwatchTest, AnyNameIsAName) {
  Enable();
  for (const char* name : {"", "a/b", "../x", "\"quoted\"", "two\nlines", "größe", "%s%n"}) {
    Measure(name, 1);
    EXPECT_EQ(Stats(name).per_interval().count(), 1) << name;
  }
  EXPECT_THAT(stopwatch_.Table(), HasSubstr("two\\nlines"));
  EXPECT_THAT(stopwatch_.Json(), HasSubstr("two\\nlines"));
}

TEST_F(StopwatchTest, NamesThatAreNotUtf8AreEscapedWhereProtobufDemandsIt) {
  Enable();
  const struct {
    const char* name;
    const char* escaped;
  } kNames[] = {{"caf\xE9!", "caf\\xe9!"},           {"\xC0\x80", "\\xc0\\x80"},
                {"\xED\xA0\x80", "\\xed\\xa0\\x80"}, {"\xF5", "\\xf5"},
                {"\xE2\x82", "\\xe2\\x82"},          {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}};
  for (const auto& [name, escaped] : kNames) {
    Measure(name, 1);
    EXPECT_EQ(Stats(escaped).per_interval().count(), 1) << escaped;
  }
  StopwatchStats back;
  EXPECT_TRUE(back.ParseFromString(Stats().SerializeAsString()));
}

TEST_F(StopwatchTest, ManyNamesAreFoundAgain) {
  Enable();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 500; ++i) Measure("name " + std::to_string(i), 1);
  }
  EXPECT_EQ(Stats().measurements_size(), 500);
  EXPECT_EQ(Stats("name 499").per_interval().count(), 2);
}

TEST_F(StopwatchTest, NamesThatAreMadeUpAtEachLevelAreFoundInTheirPlace) {
  Enable();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 500; ++i) {
      const Stopwatch::Scope step(stopwatch_, "step " + std::to_string(i));
      const Stopwatch::Scope work(stopwatch_, "work " + std::to_string(i));
    }
  }
  const std::vector<StopwatchSnapshot::Scope> scopes = stopwatch_.Snapshot().scopes;
  ASSERT_EQ(scopes.size(), 500u);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(scopes[i].name, "step " + std::to_string(i));
    ASSERT_EQ(scopes[i].inner.size(), 1u);
    EXPECT_EQ(scopes[i].inner[0].name, "work " + std::to_string(i));
    EXPECT_EQ(scopes[i].inner[0].count, 2);
  }
}

TEST_F(StopwatchTest, OptionsComeFromTheConfiguration) {
  StopwatchConfig config;
  config.set_num_warmup_iters(3);
  config.set_print_every_n_iters(50);
  config.set_device_sync(DEVICE_SYNC_DEVICE);
  config.add_collective_measurements("allreduce");
  config.set_cpu_usage_measurement("forward");
  config.set_emit_nvtx(true);
  EXPECT_EQ(Stopwatch::FromConfig(config).on_misuse, OnMisuse::kLogAndCount);
  config.set_on_misuse(MISUSE_POLICY_ABORT);
  const Stopwatch::Options options = Stopwatch::FromConfig(config);
  EXPECT_EQ(options.num_warmup_iters, 3);
  EXPECT_EQ(options.print_every_n_iters, 50);
  EXPECT_EQ(options.device_sync, Stopwatch::DeviceSync::kDevice);
  EXPECT_THAT(options.collective_measurements, ElementsAre("allreduce"));
  EXPECT_EQ(options.cpu_usage_measurement, "forward");
  EXPECT_TRUE(options.emit_nvtx);
  EXPECT_EQ(options.on_misuse, OnMisuse::kAbort);
  EXPECT_EQ(options.stream, nullptr);
  EXPECT_EQ(options.series_limit, Stopwatch::Options().series_limit);
  EXPECT_TRUE(options.watch_cpu);
  EXPECT_GT(options.arrivals_limit, 0u);
  config.set_device_sync(DEVICE_SYNC_EVENTS);
  config.set_per_thread_default_stream(true);
  config.set_series_limit(0);
  config.set_watch_cpu(false);
  config.set_arrivals_limit(7);
  const Stopwatch::Options others = Stopwatch::FromConfig(config);
  EXPECT_EQ(others.device_sync, Stopwatch::DeviceSync::kEvents);
  EXPECT_NE(others.stream, nullptr);
  EXPECT_EQ(others.series_limit, 0u);
  EXPECT_FALSE(others.watch_cpu);
  EXPECT_EQ(others.arrivals_limit, 7u);
  config.set_device_sync(DEVICE_SYNC_STREAM);
  EXPECT_EQ(Stopwatch::FromConfig(config).device_sync, Stopwatch::DeviceSync::kStream);
}

TEST_F(StopwatchTest, NestedScopesKnowInclusiveAndExclusiveTime) {
  Enable();
  for (int i = 0; i < 2; ++i) {
    const Stopwatch::Scope forward(stopwatch_, "forward");
    Pass(1);
    for (int layer = 0; layer < 3; ++layer) {
      const Stopwatch::Scope conv(stopwatch_, "conv");
      Pass(2);
      const Stopwatch::Scope copy(stopwatch_, "copy");
      Pass(4);
    }
  }
  {
    const Stopwatch::Scope copy(stopwatch_, "copy");
    Pass(8);
  }
  Measure("started", 16);

  const std::vector<StopwatchSnapshot::Scope> scopes = stopwatch_.Snapshot().scopes;
  ASSERT_EQ(scopes.size(), 3);
  EXPECT_EQ(scopes[0].name, "forward");
  EXPECT_EQ(scopes[0].count, 2);
  EXPECT_DOUBLE_EQ(scopes[0].inclusive, 0.038);
  EXPECT_DOUBLE_EQ(scopes[0].exclusive, 0.002);
  ASSERT_EQ(scopes[0].inner.size(), 1);
  const StopwatchSnapshot::Scope& conv = scopes[0].inner[0];
  EXPECT_EQ(conv.count, 6);
  EXPECT_DOUBLE_EQ(conv.inclusive, 0.036);
  EXPECT_DOUBLE_EQ(conv.exclusive, 0.012);
  ASSERT_EQ(conv.inner.size(), 1);
  EXPECT_DOUBLE_EQ(conv.inner[0].inclusive, 0.024);
  EXPECT_EQ(Stats(conv.name).outer(), "forward");
  EXPECT_EQ(Stats("forward").outer(), "");
  EXPECT_EQ(scopes[1].name, "copy");
  EXPECT_DOUBLE_EQ(scopes[1].inclusive, 0.008);
  EXPECT_EQ(scopes[2].name, "started");
  // By name alone, both places add up.
  EXPECT_EQ(Stats("copy").per_interval().count(), 7);
  EXPECT_DOUBLE_EQ(Stats("copy").per_interval().total(), 0.032);
}

TEST_F(StopwatchTest, ARecursionOfAnyDepthCanBeReadBack) {
  Enable();
  const std::function<void(int)> recurse = [&](int levels) {
    const Stopwatch::Scope scope(stopwatch_, "recurse");
    Pass(1);
    if (levels > 1) recurse(levels - 1);
  };
  recurse(200);
  EXPECT_EQ(Stats("recurse").per_interval().count(), 200);
  StopwatchStats back;
  ASSERT_TRUE(back.ParseFromString(Stats().SerializeAsString()));
  EXPECT_THAT(stopwatch_.Json(), HasSubstr("recurse"));
  const ScopeStats* scope = &back.scopes(0);
  int depth = 1;
  for (; scope->inner_size() > 0; ++depth) {
    EXPECT_DOUBLE_EQ(scope->exclusive(), 0.001);
    scope = &scope->inner(0);
  }
  EXPECT_EQ(depth, StopwatchSnapshot::kMaxScopeDepth);
  EXPECT_DOUBLE_EQ(scope->exclusive(), 0.151);
}

TEST_F(StopwatchTest, AScopeThatEndsOnAnotherThreadIsMisuse) {
  Enable();
  std::optional<Stopwatch::Scope> moved;
  moved.emplace(stopwatch_, "moved");
  ::testing::internal::CaptureStderr();
  std::thread([&] { moved.reset(); }).join();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ContainsRegex("scope \"moved\" of .*:[0-9]+ ends on thread [0-9]+, but began on thread [0-9]+"));
  EXPECT_THAT(Misuses(), ElementsAre("scope \"moved\" ended on another thread"));
  stopwatch_.FinishIter();  // is refused no more
  EXPECT_EQ(Stats().num_measured_iters(), 1);
  EXPECT_EQ(Stats("moved").per_interval().count(), 0);
}

TEST_F(StopwatchTest, ScopesThatDoNotNestAreMisuse) {
  Enable();
  std::optional<Stopwatch::Scope> outer, inner;
  outer.emplace(stopwatch_, "outer");
  inner.emplace(stopwatch_, "inner");
  ::testing::internal::CaptureStderr();
  outer.reset();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ContainsRegex("scope \"outer\" of .*:[0-9]+ ends on thread [0-9]+.*innermost scope is \"inner\" of "));
  EXPECT_THAT(Misuses(), ElementsAre("scope \"outer\" ended before what is inside of it"));
  inner.reset();
  { const Stopwatch::Scope next(stopwatch_, "next"); }
  stopwatch_.FinishIter();
  EXPECT_EQ(Stats().num_measured_iters(), 1);
  EXPECT_EQ(Stats().misuses_size(), 1);
  EXPECT_EQ(Stats("outer").per_interval().count(), 0);
  EXPECT_EQ(Stats("inner").per_interval().count(), 1);
  EXPECT_EQ(Stats().scopes_size(), 2);  // outer with inner, next
}

TEST_F(StopwatchTest, QuantilesCoverIntervalsAndIterations) {
  Enable();
  for (uint64_t i = 1; i <= 100; ++i) {
    Measure("growing", i);
    Measure("growing", i);
    stopwatch_.FinishIter();
  }
  const Measurement growing = Stats("growing");
  EXPECT_NEAR(growing.per_interval().p50(), 0.050, 0.0005);
  EXPECT_NEAR(growing.per_interval().p99(), 0.099, 0.001);
  EXPECT_NEAR(growing.per_iteration().p90(), 0.180, 0.0018);
}

TEST_F(StopwatchTest, TheSeriesHasATimeForEachIteration) {
  Stopwatch::Options options;
  options.num_warmup_iters = 1;
  options.series_limit = 4;
  Enable(options);
  Measure("early", 100);
  stopwatch_.FinishIter();
  Measure("early", 1);
  stopwatch_.FinishIter();
  Measure("late", 2);
  stopwatch_.FinishIter();
  EXPECT_THAT(Stats("early").series().seconds(), ElementsAre(FloatEq(0.001f), 0));
  EXPECT_THAT(Stats("late").series().seconds(), ElementsAre(0, FloatEq(0.002f)));
  EXPECT_EQ(Stats("late").series().stride(), 1);
  for (int i = 0; i < 6; ++i) stopwatch_.FinishIter();
  EXPECT_EQ(Stats("late").series().stride(), 2);
  EXPECT_EQ(Stats().iteration_series().seconds_size(), 4);
  EXPECT_THAT(stopwatch_.Table(), HasSubstr("one in 2 was kept"));
}

TEST_F(StopwatchTest, AMeasurementBegunInWarmUpIsNotCounted) {
  Stopwatch::Options options;
  options.num_warmup_iters = 1;
  Enable(options);
  stopwatch_.Start("long");
  Pass(5);
  ::testing::internal::CaptureStderr();
  stopwatch_.FinishIter();
  ::testing::internal::GetCapturedStderr();
  stopwatch_.End("long");
  stopwatch_.FinishIter();
  Measure("long", 3);
  stopwatch_.FinishIter();
  EXPECT_EQ(Stats("long").per_interval().count(), 1);
  EXPECT_DOUBLE_EQ(Stats("long").per_interval().total(), 0.003);
}

TEST_F(StopwatchTest, TheCostOfObservingIsCalibratedAndReported) {
  // A clock that takes 5 ns to read: an interval reads it twice.
  static std::atomic<uint64_t> slow_now{0};
  Stopwatch stopwatch(Stopwatch::Environment{Clock([] { return slow_now += 5; })});
  ASSERT_TRUE(stopwatch.Enable({}).ok());
  EXPECT_NEAR(stopwatch.Snapshot().observer_seconds_per_interval, 10e-9, 0.1e-9);
  stopwatch.Start("a");
  slow_now += 1000;
  stopwatch.End("a");
  stopwatch.FinishIter();
  EXPECT_THAT(stopwatch.Table(), ContainsRegex("Observer cost: 1 intervals of 10.0. ns are 0.9[0-9]+ % of"));
}

TEST_F(StopwatchTest, TheRealClockSeesRealTime) {
  Stopwatch stopwatch(Stopwatch::Environment{Clock::Fastest()});
  ASSERT_TRUE(stopwatch.Enable({}).ok());
  const auto start = std::chrono::steady_clock::now();
  stopwatch.Start("busy");
  while (std::chrono::steady_clock::now() < start + std::chrono::milliseconds(20)) {
  }
  stopwatch.End("busy");
  const double around = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double measured = stopwatch.Snapshot().measurements[0].per_interval.total();
  EXPECT_GE(measured, 0.0199);
  EXPECT_LE(measured, around * 1.001);
}

TEST(StopwatchDeathTest, OfThisProcessReportsAtExit) {
  EXPECT_EXIT(
      {
        Stopwatch::Options options;
        options.at_exit = [](const Stopwatch& stopwatch) { std::fputs(stopwatch.Table().c_str(), stderr); };
        if (!Stopwatch::Get().Enable(options).ok()) std::abort();
        { OTT_STOPWATCH_SCOPE("before exit"); }
        Stopwatch::Get().FinishIter();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "Stopwatch: 1 measured iterations.*\nbefore exit ");
}

TEST(StopwatchDeathTest, AForkedProcessDoesNotReportForItsParent) {
  EXPECT_EXIT(
      {
        Stopwatch::Options options;
        options.at_exit = [](const Stopwatch&) { std::fputs("report\n", stderr); };
        if (!Stopwatch::Get().Enable(options).ok()) std::abort();
        const pid_t child = fork();
        if (child != 0) waitpid(child, nullptr, 0);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), ::testing::Eq("report\n"));
}

TEST(StopwatchDeathTest, EnablingTheOneOfThisProcessTwiceIsRefused) {
  EXPECT_EXIT(
      {
        if (!Stopwatch::Get().Enable({}).ok()) std::abort();
        std::fprintf(stderr, "%s\n", Stopwatch::Get().Enable({}).ToString().c_str());
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "FAILED_PRECONDITION: stopwatch: enabled at .*, but already enabled at ");
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
