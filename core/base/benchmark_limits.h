// Benchmarks that print each figure beside its limit.

#ifndef OTT_CORE_BASE_BENCHMARK_LIMITS_H_
#define OTT_CORE_BASE_BENCHMARK_LIMITS_H_

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmark/benchmark.h"
#include "ott/core/base/check.h"

namespace ott {

// CPU time of the fastest repetition of each benchmark, summed over its threads: what disturbs only ever
// adds.
class FastestRuns : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      const double nanoseconds = run.GetAdjustedCPUTime();
      const auto [known, added] = nanoseconds_.emplace(run.benchmark_name(), nanoseconds);
      if (!added) known->second = std::min(known->second, nanoseconds);
    }
  }

  double operator[](const std::string& name) const {
    const auto found = nanoseconds_.find(name);
    OTT_CHECK(found != nanoseconds_.end()) << "no benchmark " << name << " was run; run all of them";
    return found->second;
  }

 private:
  std::map<std::string, double> nanoseconds_;
};

// Two calls of a function that does nothing: the yardstick for a pair of calls to a helper that is off.
[[gnu::noinline]] inline void EmptyFunction() { asm volatile(""); }
inline void EmptyFunctionPair(benchmark::State& state) {
  for (auto _ : state) {
    EmptyFunction();
    EmptyFunction();
  }
}

// Prints figures beside their limits.
class BenchmarkLimits {
 public:
  void AtMost(const char* what, double value, double limit, const char* unit) {
    const bool holds = value <= limit;
    all_hold_ = all_hold_ && holds;
    std::printf("%-58s %6.2f %s  at most %4.2f  %s\n", what, value, unit, limit, holds ? "ok" : "MISSED");
  }
  bool all_hold() const { return all_hold_; }

 private:
  bool all_hold_ = true;
};

// Runs the benchmarks named Off_*, calls enable(), and runs those named On_*. set_limits(fastest_runs,
// limits) then says what they are held to. Returns main()'s exit code.
template <typename Enable, typename SetLimits>
int RunOffAndOn(int argc, char** argv, const Enable& enable, const SetLimits& set_limits) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  FastestRuns nanoseconds;
  benchmark::RunSpecifiedBenchmarks(&nanoseconds, "^Off_");
  const absl::Status enabled = enable();
  OTT_CHECK(enabled.ok()) << enabled;
  benchmark::RunSpecifiedBenchmarks(&nanoseconds, "^On_");
  std::printf("\n");
  BenchmarkLimits limits;
  set_limits(nanoseconds, limits);
  return limits.all_hold() ? 0 : 1;
}

}  // namespace ott

#endif  // OTT_CORE_BASE_BENCHMARK_LIMITS_H_
