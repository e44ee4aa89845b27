// Measures what recording an event costs beside reading the clock, and its limit.
//
//   bazel run //core/flight:flight_recorder_benchmark

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/flight/flight_recorder.h"

namespace ott {
namespace {

FlightRecorder& Recorder() {
  static FlightRecorder* const recorder = [] {
    const std::string path = absl::StrCat("/tmp/flight_recorder_benchmark.", getpid());
    FlightRecorder* const created = *FlightRecorder::Create({path, 0, 1, "host"}, Clock::Fastest());
    unlink(path.c_str());
    return created;
  }();
  return *recorder;
}

void On_Work(benchmark::State& state) {
  FlightRecorder::Measurement* const measurement = Recorder().Add("work", {});
  for (auto _ : state) {
    FlightRecorder::Begin(measurement, 1, 0);
    FlightRecorder::End(measurement, 2, 0);
  }
}
BENCHMARK(On_Work);

void On_Collective(benchmark::State& state) {
  FlightOperation operation;
  operation.role = FlightRole::kCollective;
  FlightRecorder::Measurement* const measurement = Recorder().Add("collective", operation);
  for (auto _ : state) {
    FlightRecorder::Begin(measurement, 1, 0);
    FlightRecorder::End(measurement, 2, 0);
  }
}
BENCHMARK(On_Collective);

void On_SteadyClock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}
BENCHMARK(On_SteadyClock);

void SetLimits(const FastestRuns& ns, BenchmarkLimits& limits) {
  limits.AtMost("an event of work", ns["On_Work"] / 2, 10, "ns");
  limits.AtMost("an event of a collective measurement", ns["On_Collective"] / 2, 10, "ns");
  limits.AtMost("an event of work, to steady_clock::now()", ns["On_Work"] / 2 / ns["On_SteadyClock"], 1,
                "x ");
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  return ott::RunOffAndOn(
      argc, argv, [] { return absl::OkStatus(); }, ott::SetLimits);
}
