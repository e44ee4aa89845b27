#include "ott/core/stopwatch/stopwatch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/events/recorded_window.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "stopwatch_for_test.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

TEST_F(StopwatchTest, IgnoresEverythingUntilEnabled) {
  stopwatch_.Start("early");
  stopwatch_.StartOneTime("early");
  stopwatch_.End("never started");
  stopwatch_.FinishIter();
  stopwatch_.EndOneTime("never started");
  stopwatch_.CloseWindow();
  EXPECT_TRUE(stopwatch_.TakeArrivals().empty());
  EXPECT_FALSE(stopwatch_.enabled());
  EXPECT_EQ(Stats().measurements_size() + Stats().one_time_size(), 0);
  Enable();
  Pass(1);
  stopwatch_.FinishIter();
  EXPECT_TRUE(stopwatch_.enabled());
  EXPECT_EQ(Stats().measurements_size() + Stats().one_time_size(), 0);
  EXPECT_EQ(Stats().iteration().total(), 0) << "nothing began";
}

// The milliseconds of each interval, by iteration.
using Intervals = std::vector<std::vector<int64_t>>;

DurationStatistics StatisticsOf(const std::vector<int64_t>& milliseconds) {
  DurationStatistics statistics;
  for (const int64_t duration : milliseconds) statistics.AddSeconds(1e-3 * static_cast<double>(duration));
  return statistics;
}

void ExpectSeries(const Series& found, const std::vector<int64_t>& milliseconds, size_t limit) {
  IterationSeries expected(limit);
  for (const int64_t duration : milliseconds) expected.Append(1e-3f * static_cast<float>(duration));
  EXPECT_EQ(found.stride(), expected.stride());
  EXPECT_THAT(found.seconds(), Pointwise(FloatEq(), expected.values()));
}

// By place, the names from the outermost: how often, and milliseconds with and without what was inside.
using Places = std::map<std::string, std::vector<int64_t>>;

Places PlacesOf(const google::protobuf::RepeatedPtrField<ScopeStats>& scopes, const std::string& outer) {
  Places places;
  for (const ScopeStats& scope : scopes) {
    const std::string place = outer + "/" + scope.name();
    places[place] = {scope.count(), std::llround(1e3 * scope.inclusive()),
                     std::llround(1e3 * scope.exclusive())};
    places.merge(PlacesOf(scope.inner(), place));
  }
  return places;
}

// Any sequence of scopes, and of "e", which calls start and end. What is off forgets all but names.
TEST_F(StopwatchTest, AnySequenceIsCountedByIntervalByIterationAndByPlace) {
  std::mt19937 random(1);
  const int device_calls_before = num_device_calls;
  Places places;
  for (int trial = 0; trial < 90; ++trial) {
    const int64_t num_iterations = 1 + random() % 9;
    std::vector<int64_t> printed;
    Stopwatch::Options options;
    options.num_warmup_iters = trial % 4;
    options.series_limit = 2 + random() % 9;
    if (trial % 2 == 0) options.collective_measurements = {"b", "*e"};
    options.arrivals_limit = 8;
    options.sampled_measurements = options.collective_measurements;
    options.print_every_n_iters = random() % 4;
    options.print = [&](const Stopwatch& of) { printed.push_back(of.num_measured_iters()); };
    Enable(options);
    int64_t last_end = Now();
    Pass(1);
    // The first iteration begins with the first measurement.
    last_end = Now();
    std::map<std::string, Intervals> intervals;
    std::vector<int64_t> iterations, expected_printed;
    places.clear();
    for (int64_t iteration = 0; iteration < num_iterations; ++iteration) {
      const bool is_measured = iteration >= options.num_warmup_iters;
      const std::function<int64_t(const std::string&)> measure = [&](const std::string& outer) {
        const std::string name(1, "abcde"[random() % 5]);
        const std::string place = name == "e" ? "/e" : outer + "/" + name;
        const int64_t start = Now();
        int64_t inside = 0;
        if (name == "e") {
          stopwatch_.Start(name);
          Pass(1 + random() % 3);
          std::thread([&] { stopwatch_.End(name); }).join();
        } else {
          const Stopwatch::Scope scope(stopwatch_, name);
          Pass(1 + random() % 3);
          while (random() % 3 == 0) inside += measure(place);
        }
        const int64_t inclusive = Now() - start;
        intervals[name].resize(num_iterations);
        intervals[name][iteration].push_back(inclusive);
        if (is_measured) {
          std::vector<int64_t>& sums = places.try_emplace(place, 3).first->second;
          sums = {sums[0] + 1, sums[1] + inclusive, sums[2] + inclusive - inside};
        }
        return name == "e" ? 0 : inclusive;
      };
      for (uint32_t left = iteration == 0 ? 1 : random() % 5; left > 0; --left)
        random() % 2 == 0 ? (void)measure("") : std::thread([&] { measure(""); }).join();
      stopwatch_.FinishIter();
      const int64_t duration = Now() - std::exchange(last_end, Now());
      if (!is_measured) continue;
      iterations.push_back(duration);
      const auto num_measured = static_cast<int64_t>(iterations.size());
      if (options.print_every_n_iters > 0 && num_measured % options.print_every_n_iters == 0) {
        expected_printed.push_back(num_measured);
      }
    }
    EXPECT_EQ(printed, expected_printed);
    EXPECT_FALSE(Stats().has_cpu_usage());
    EXPECT_TRUE(stopwatch_.SetCpuUsageMeasurement("a").ok());
    stopwatch_.StartOneTime("load");
    stopwatch_.EndOneTime("load");
    Printed([&] { stopwatch_.End("load"); });
    EXPECT_THAT(Misuses(), ElementsAre("End(\"load\") without Start"));
    EXPECT_EQ(Stats().one_time_size(), 1);
    EXPECT_EQ(stopwatch_.Snapshot().num_warmup_iters_done,
              std::min(num_iterations, options.num_warmup_iters));
    const StopwatchStats stats = Stats();
    EXPECT_EQ(stats.num_warmup_iters(), options.num_warmup_iters);
    EXPECT_EQ(stats.num_measured_iters(), iterations.size());
    EXPECT_EQ(DurationStatistics::FromProto(stats.iteration()).value(), StatisticsOf(iterations));
    ExpectSeries(stats.iteration_series(), iterations, options.series_limit);
    EXPECT_EQ(PlacesOf(stats.scopes(), ""), places);
    EXPECT_EQ(stats.measurements_size(), intervals.size());
    if (trial % 2 == 1) {
      EXPECT_TRUE(stopwatch_.TakeArrivals().empty());
    }
    for (const Measurement& measurement : stats.measurements()) {
      Intervals& of_measurement = intervals[measurement.name()];
      of_measurement.resize(num_iterations);
      std::vector<int64_t> all, sums, series;
      for (int64_t iteration = options.num_warmup_iters; iteration < num_iterations; ++iteration) {
        const std::vector<int64_t>& part = of_measurement[iteration];
        all.insert(all.end(), part.begin(), part.end());
        series.push_back(std::accumulate(part.begin(), part.end(), int64_t{0}));
        if (!part.empty()) sums.push_back(series.back());
      }
      EXPECT_EQ(DurationStatistics::FromProto(measurement.per_interval()).value(), StatisticsOf(all));
      EXPECT_EQ(DurationStatistics::FromProto(measurement.per_iteration()).value(), StatisticsOf(sums));
      ExpectSeries(measurement.series(), series, options.series_limit);
      EXPECT_EQ(measurement.collective(),
                trial % 2 == 0 && (measurement.name() == "b" || measurement.name() == "e"));
      EXPECT_FALSE(measurement.has_device_per_interval());
      EXPECT_LE(measurement.own().all().count(), sums.size());
      EXPECT_EQ(measurement.outermost(), places.count("/" + measurement.name()) > 0);
      std::set<std::string> around;
      for (const auto& [place, sums_of_place] : places) {
        const size_t at = place.size() - 1;
        if (place[at] == measurement.name()[0] && at > 2 && place[at - 2] != place[at])
          around.insert(place.substr(at - 2, 1));
      }
      if (around.empty()) around.insert("");
      EXPECT_EQ(around.count(measurement.outer()), 1);
      const auto mean = [](const Statistics& of) {
        return of.count() > 0 ? std::optional<double>(of.mean()) : std::nullopt;
      };
      EXPECT_EQ(stopwatch_.MeanSecondsPerInterval(measurement.name()), mean(measurement.per_interval()));
      EXPECT_EQ(stopwatch_.MeanSecondsPerIteration(measurement.name()), mean(measurement.per_iteration()));
    }
    stopwatch_.Disable();
    EXPECT_EQ(stopwatch_.num_measured_iters(), 0);
    for (const StopwatchSnapshot::Measurement& measurement : stopwatch_.Snapshot().measurements)
      EXPECT_FALSE(measurement.collective || measurement.sampled);
  }
  EXPECT_EQ(num_device_calls, device_calls_before);
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
  EXPECT_EQ(other.Snapshot().measurements.at(0).per_interval.count(), 1);
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
  EXPECT_EQ(stats.one_time(0).name(), "load");
  EXPECT_FALSE(stats.one_time(0).running());
  EXPECT_DOUBLE_EQ(stats.one_time(0).seconds(), 0.050);
  EXPECT_TRUE(stats.one_time(1).running());
  EXPECT_DOUBLE_EQ(stats.one_time(1).seconds(), 0.020);
  EXPECT_THAT(stopwatch_.Table(), ContainsRegex("train +20.00 ms +running"));
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
              HasSubstr("arrivals_limit -5 must not be negative"));
  options.series_limit = Stopwatch::kMaxSeriesLimit;
  Enable(options);
}

TEST_F(StopwatchTest, WhatAProfilerRecordedBeforeIsMeasuredAsEverythingElse) {
  Enable();
  stopwatch_.Disable();
  EventRecorder recorder(Clock::Steady());
  recorder.Open();
  stopwatch_.RecordInto(&recorder);
  EXPECT_THAT(std::string(stopwatch_.Enable({}).message()), HasSubstr("while a profiler's window is open"));
  Measure("allreduce", 1);
  stopwatch_.StartOneTime("load");
  stopwatch_.EndOneTime("load");
  std::optional<Stopwatch::Scope> open;
  open.emplace(stopwatch_, "open");
  stopwatch_.RecordInto(nullptr);
  Pass(1000);
  recorder.Close();
  const RecordedWindow window(recorder);
  std::vector<std::string> names;
  window.Visit([&](const TraceEvent& event) { names.emplace_back(event.name); });
  EXPECT_THAT(names, ElementsAre("allreduce", "load", "open"));
  EXPECT_EQ(window.num_unfinished_ranges(), 1);
  EXPECT_EQ(window.num_ends_without_begin(), 0);

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
  EXPECT_EQ(snapshot.measurements.size(), 1u);
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
  const std::string log = Printed([&] {
    stopwatch_.End("a");
    for (int i = 0; i < 2; ++i) stopwatch_.Start("a");
    for (int i = 0; i < 100; ++i) stopwatch_.FinishIter();
    for (int i = 0; i < 2; ++i) {
      stopwatch_.StartOneTime("once");
      stopwatch_.EndOneTime("once");
    }
  });
  EXPECT_THAT(log, AllOf(HasSubstr("End(\"a\")"), HasSubstr("Start(\"a\")"), HasSubstr("FinishIter()"),
                         HasSubstr("StartOneTime(\"once\")"), HasSubstr("EndOneTime(\"once\")")));
  EXPECT_THAT(Misuses(),
              ElementsAre("End(\"a\") without Start", "Start(\"a\") while it runs",
                          "FinishIter() while \"a\" runs, so that no iteration counts",
                          "StartOneTime(\"once\") again", "EndOneTime(\"once\") without StartOneTime"));
  EXPECT_EQ(Stats().misuses(2).count(), 100);
  const std::string table = stopwatch_.Table();
  EXPECT_THAT(table,
              AllOf(HasSubstr("Stopwatch: 0 measured iterations\n"),
                    HasSubstr("missing above: End(\"a\") without Start, 1 time\n"),
                    HasSubstr("FinishIter() while \"a\" runs, so that no iteration counts, 100 times\n")));
  EXPECT_EQ(table.find("FinishIter()"), table.rfind("FinishIter()"));
}

TEST(StopwatchOfThisProcess, MeasuresInAChildThatIsForkedWhileAnotherThreadReadsIt) {
  ASSERT_TRUE(Stopwatch::Get().Enable({}).ok());
  for (int i = 0; i < 200; ++i) const Stopwatch::Scope scope(std::to_string(i));
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    while (!is_over) Stopwatch::Get().Snapshot();
  });
  int status = 0;
  for (int i = 0; i < 50 && status == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      // Ends it if it stands.
      alarm(20);
      { const Stopwatch::Scope scope("of the child"); }
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  is_over = true;
  reader.join();
  EXPECT_EQ(status, 0);
  Stopwatch::Get().Disable();
}

TEST_F(StopwatchTest, FinishingAnIterationNamesAllThatRuns) {
  Enable();
  stopwatch_.Start("started");
  const Stopwatch::Scope scope(stopwatch_, "scoped");
  EXPECT_THAT(
      Printed([this] { std::thread([this] { stopwatch_.FinishIter(); }).join(); }),
      AllOf(ContainsRegex("\"started\", started at .*stopwatch_test.cc:[0-9]+ by thread [0-9]+"),
            ContainsRegex("scope \"scoped\", started at .*stopwatch_test.cc:[0-9]+ by thread [0-9]+")));
  EXPECT_EQ(Stats().num_measured_iters(), 0);
}

TEST_F(StopwatchTest, OfManyThatRunTheFirstAreNamed) {
  Enable();
  for (int i = 0; i < 1000; ++i) stopwatch_.Start(std::to_string(i));
  EXPECT_THAT(Printed([&] { stopwatch_.FinishIter(); }),
              AllOf(HasSubstr("\"19\", started at"), Not(HasSubstr("\"20\", started at")),
                    HasSubstr("\n  and 980 more\n")));
}

TEST_F(StopwatchTest, AnyNameIsANameAndIsEscapedWhereProtobufDemandsIt) {
  Enable();
  const std::map<std::string, std::string> escaped = {{"caf\xE9!", "caf\\xe9!"},
                                                      {"\xED\xA0\x80", "\\xed\\xa0\\x80"}};
  const char* const as_they_are[] = {"",           "a/b",   "../x", "\"quoted\"",
                                     "two\nlines", "größe", "%s%n", "\xF0\x9F\x98\x80"};
  for (const char* const name : as_they_are) {
    Measure(name, 1);
    EXPECT_EQ(Stats(name).per_interval().count(), 1) << name;
  }
  for (const auto& [name, in_proto] : escaped) {
    Measure(name, 1);
    EXPECT_EQ(Stats(in_proto).per_interval().count(), 1) << in_proto;
  }
  Printed([&] { stopwatch_.End("a\xff"); });
  EXPECT_THAT(Misuses(), ElementsAre("End(\"a\\xff\") without Start"));
  StopwatchStats back;
  EXPECT_TRUE(back.ParseFromString(Stats().SerializeAsString()));
  EXPECT_THAT(stopwatch_.Table(), HasSubstr("two\\nlines"));
  EXPECT_THAT(stopwatch_.Json(), HasSubstr("two\\nlines"));
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
  EXPECT_EQ(Stats("work 499").outer(), "step 499");
  EXPECT_EQ(Stats("step 499").outer(), "");
}

TEST_F(StopwatchTest, OptionsComeFromTheConfiguration) {
  StopwatchConfig config;
  EXPECT_EQ(Stopwatch::FromConfig(config).device_sync, Stopwatch::DeviceSync::kNone);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(num_warmup_iters: 3 print_every_n_iters: 50 device_sync: DEVICE_SYNC_DEVICE emit_nvtx: true
         collective_measurements: "allreduce" cpu_usage_measurement: "forward")",
      &config));
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
  EXPECT_GE(options.arrivals_limit, 40u * 400);  // iterations that a verdict takes, collectives in each
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(device_sync: DEVICE_SYNC_EVENTS per_thread_default_stream: true series_limit: 0 watch_cpu: false
         arrivals_limit: 7)",
      &config));
  const Stopwatch::Options others = Stopwatch::FromConfig(config);
  EXPECT_EQ(others.device_sync, Stopwatch::DeviceSync::kEvents);
  EXPECT_NE(others.stream, nullptr);
  EXPECT_EQ(others.series_limit, 0u);
  EXPECT_FALSE(others.watch_cpu);
  EXPECT_EQ(others.arrivals_limit, 7u);
  config.set_device_sync(DEVICE_SYNC_STREAM);
  EXPECT_EQ(Stopwatch::FromConfig(config).device_sync, Stopwatch::DeviceSync::kStream);
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
  EXPECT_THAT(
      Printed([&] { std::thread([&] { moved.reset(); }).join(); }),
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
  EXPECT_THAT(
      Printed([&] { outer.reset(); }),
      ContainsRegex("scope \"outer\" of .*:[0-9]+ ends on thread [0-9]+.*innermost scope is \"inner\" of "));
  EXPECT_THAT(Misuses(), ElementsAre("scope \"outer\" ended before what is inside of it"));
  inner.reset();
  {
    const Stopwatch::Scope next(stopwatch_, "next");
    const Stopwatch::Scope nested(stopwatch_, "nested");
  }
  stopwatch_.FinishIter();
  EXPECT_EQ(Stats().num_measured_iters(), 1);
  EXPECT_EQ(Stats().misuses_size(), 1);
  EXPECT_EQ(Stats("outer").per_interval().count(), 0);
  EXPECT_EQ(Stats("inner").per_interval().count(), 1);
  EXPECT_EQ(Stats().scopes_size(), 2);  // outer with inner, next
}

TEST_F(StopwatchTest, AMeasurementBegunInWarmUpIsNotCounted) {
  Stopwatch::Options options;
  options.num_warmup_iters = 1;
  Enable(options);
  stopwatch_.Start("long");
  Pass(5);
  Printed([&] { stopwatch_.FinishIter(); });
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

TEST(StopwatchDeathTest, OfThisProcessReportsAtExit) {
  EXPECT_EXIT(
      {
        Stopwatch::Options options;
        options.at_exit = [](const Stopwatch& stopwatch) { std::fputs(stopwatch.Table().c_str(), stderr); };
        if (!Stopwatch::Get().Enable(options).ok()) std::abort();
        {
          OTT_STOPWATCH_SCOPE("before exit");
          OTT_STOPWATCH_SCOPE("inside");
        }
        Stopwatch::Get().FinishIter();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "Stopwatch: 1 measured iterations.*\nbefore exit .*\n  inside ");
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

}  // namespace
}  // namespace ott
