// Measures what a measurement costs, each figure beside its limit. Ratios count, not nanoseconds: they hold
// on other machines.
//
//   bazel run //core/stopwatch:stopwatch_benchmark

#include <unistd.h>

#include <chrono>
#include <string>

#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott {
namespace {

BENCHMARK(EmptyFunctionPair)->Name("Off_EmptyFunctionPair");

void StartEndByHandle(benchmark::State& state) {
  static Stopwatch::Measurement measurement("by handle");
  for (auto _ : state) {
    measurement.Start();
    benchmark::ClobberMemory();
    measurement.End();
  }
}
BENCHMARK(StartEndByHandle)->Name("Off_StartEndByHandle");
BENCHMARK(StartEndByHandle)->Name("On_StartEndByHandle");

void StartEndByName(benchmark::State& state) {
  Stopwatch& stopwatch = Stopwatch::Get();
  for (auto _ : state) {
    stopwatch.Start("by name");
    benchmark::ClobberMemory();
    stopwatch.End("by name");
  }
}
BENCHMARK(StartEndByName)->Name("Off_StartEndByName");
BENCHMARK(StartEndByName)->Name("On_StartEndByName");

void Scope(benchmark::State& state) {
  for (auto _ : state) {
    OTT_STOPWATCH_SCOPE("scope");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(Scope)->Name("Off_Scope");
BENCHMARK(Scope)->Name("On_Scope");

// The same with each begin and end left in a flight recorder, too.
void On_RecordedScope(benchmark::State& state) {
  static FlightRecorder* const recorder = [] {
    const std::string path = "/tmp/stopwatch_benchmark." + std::to_string(getpid());
    FlightRecorder* const created = *FlightRecorder::Create({path, 0, 1, ""}, Stopwatch::Get().clock());
    unlink(path.c_str());
    return created;
  }();
  OTT_CHECK(Stopwatch::Get().RecordFlight(recorder).ok());
  for (auto _ : state) {
    OTT_STOPWATCH_SCOPE("scope");
    benchmark::ClobberMemory();
  }
  OTT_CHECK(Stopwatch::Get().RecordFlight(nullptr).ok());
}
BENCHMARK(On_RecordedScope);

void ScopeByName(benchmark::State& state) {
  for (auto _ : state) {
    const Stopwatch::Scope scope("scope by name");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(ScopeByName)->Name("On_ScopeByName");

void NestedScope(benchmark::State& state) {
  OTT_STOPWATCH_SCOPE("outer");
  for (auto _ : state) {
    OTT_STOPWATCH_SCOPE("nested");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(NestedScope)->Name("On_NestedScope");

void On_SteadyClockPair(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(std::chrono::steady_clock::now());
    benchmark::DoNotOptimize(std::chrono::steady_clock::now());
  }
}
BENCHMARK(On_SteadyClockPair);

void On_ClockPair(benchmark::State& state) {
  const Clock& clock = Clock::Fastest();
  for (auto _ : state) {
    benchmark::DoNotOptimize(clock.Ticks());
    benchmark::DoNotOptimize(clock.Ticks());
  }
}
BENCHMARK(On_ClockPair);

// Threads x and the same name, or a name for each of up to eight.
void SameScope(benchmark::State& state) {
  for (auto _ : state) {
    OTT_STOPWATCH_SCOPE("of all threads");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(SameScope)->Name("On_SameScope")->Threads(1)->Threads(2)->Threads(8);

void OwnScope(benchmark::State& state) {
  static Stopwatch::Measurement own[8] = {Stopwatch::Measurement("0"), Stopwatch::Measurement("1"),
                                          Stopwatch::Measurement("2"), Stopwatch::Measurement("3"),
                                          Stopwatch::Measurement("4"), Stopwatch::Measurement("5"),
                                          Stopwatch::Measurement("6"), Stopwatch::Measurement("7")};
  Stopwatch::Measurement& measurement = own[state.thread_index()];
  for (auto _ : state) {
    const Stopwatch::Scope scope(measurement);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(OwnScope)->Name("On_OwnScope")->Threads(1)->Threads(2)->Threads(8);

void SetLimits(const FastestRuns& ns, BenchmarkLimits& limits) {
  const double off_name = ns["Off_StartEndByName"];
  const double off_handle = ns["Off_StartEndByHandle"];
  const double off_scope = ns["Off_Scope"];
  const double empty = ns["Off_EmptyFunctionPair"];
  const double two_clocks = ns["On_SteadyClockPair"];
  limits.AtMost("off, by name", off_name, 2, "ns");
  limits.AtMost("off, by handle", off_handle, 2, "ns");
  limits.AtMost("off, scope", off_scope, 2, "ns");
  limits.AtMost("off, by name, to two calls of an empty function", off_name / empty, 1.5, "x ");
  limits.AtMost("off, by handle, to two calls of an empty function", off_handle / empty, 1.5, "x ");
  limits.AtMost("off, scope, to two calls of an empty function", off_scope / empty, 1.5, "x ");
  limits.AtMost("on, by handle, to two calls of steady_clock::now()", ns["On_StartEndByHandle"] / two_clocks,
                1, "x ");
  limits.AtMost("on, scope, to two calls of steady_clock::now()", ns["On_Scope"] / two_clocks, 1, "x ");
  limits.AtMost("on, nested scope, to two calls of steady_clock::now()", ns["On_NestedScope"] / two_clocks, 1,
                "x ");
  limits.AtMost("on, by name, to two calls of steady_clock::now()", ns["On_StartEndByName"] / two_clocks, 1.5,
                "x ");
  limits.AtMost("on, scope by name, to two calls of steady_clock::now()", ns["On_ScopeByName"] / two_clocks,
                1.5, "x ");
  limits.AtMost("on, what a flight recorder adds to an event", (ns["On_RecordedScope"] - ns["On_Scope"]) / 2,
                10, "ns");
  // CPU time that does not grow with the number of threads is throughput that grows with the number of cores.
  const auto growth = [&ns](const std::string& name) {
    return ns[name + "/threads:8"] / ns[name + "/threads:1"];
  };
  limits.AtMost("on, CPU time on 8 threads to 1, a name each", growth("On_OwnScope"), 1.25, "x ");
  limits.AtMost("on, CPU time on 8 threads to 1, all the same name", growth("On_SameScope"), 1.25, "x ");
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  return ott::RunOffAndOn(
      argc, argv, [] { return ott::Stopwatch::Get().Enable({}); }, ott::SetLimits);
}
