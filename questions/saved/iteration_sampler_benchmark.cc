// Measures what it costs to keep iterations for `ott whatif`, beside what the arrivals at collective
// measurements cost in the same run: CPU time an iteration of nine measurements, two of them collective, each
// variant in a process of its own.
//
//   bazel run //questions/saved:iteration_sampler_benchmark

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <limits>

#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/clock_align.h"
#include "ott/dist/comm/local_communicator.h"
#include "ott/questions/saved/iteration_sampler.h"

namespace ott::saved {
namespace {

struct Variant {
  bool arrivals = false;
  bool cpu_times = false;  // that a TrainingRun has beside its arrivals
  bool samples = false;
};

double CpuNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

void Iterate() {
  {
    OTT_STOPWATCH_SCOPE("forward");
    for (int layer = 0; layer < 4; ++layer) {
      OTT_STOPWATCH_SCOPE("layer");
    }
  }
  { OTT_STOPWATCH_SCOPE("sum_loss"); }
  { OTT_STOPWATCH_SCOPE("backward"); }
  { OTT_STOPWATCH_SCOPE("allreduce"); }
  { OTT_STOPWATCH_SCOPE("step"); }
  Stopwatch::Get().FinishIter();
}

// Nanoseconds an iteration, of this process, which ends afterwards.
double MeasureHere(const Variant& variant, int iterations) {
  constexpr int kWarmUp = 200;
  constexpr int kGatherEvery = 500;
  Stopwatch::Options options;
  options.collective_measurements = {"sum_loss", "allreduce"};
  options.arrivals_limit = variant.arrivals ? 1024 : 0;
  options.watch_cpu = variant.cpu_times;
  OTT_CHECK(Stopwatch::Get().Enable(options).ok());
  ClockAligner clock(CreateLocalCommunicator());
  OTT_CHECK(clock.Measure(1, Deadline::Now()).ok());
  for (int i = 0; i < kWarmUp; ++i) Iterate();
  (void)Stopwatch::Get().TakeArrivals();
  IterationSampler::Options sampled;
  sampled.collective_measurements = options.collective_measurements;
  if (!variant.samples) sampled.num_warmup_iters = std::numeric_limits<int>::max();
  IterationSampler sampler(sampled);
  const double begin = CpuNanoseconds();
  for (int i = 0; i < iterations; ++i) {
    Iterate();
    sampler.FinishIter(i, clock, false);
    if (variant.arrivals && i % kGatherEvery == 0) (void)Stopwatch::Get().TakeArrivals();
  }
  return (CpuNanoseconds() - begin) / iterations;
}

double MeasureInChild(const Variant& variant, int iterations) {
  int pipe_ends[2];
  OTT_CHECK(pipe(pipe_ends) == 0) << "no pipe";
  const pid_t child = fork();
  OTT_CHECK(child >= 0) << "no process";
  if (child == 0) {
    const double nanoseconds = MeasureHere(variant, iterations);
    _exit(write(pipe_ends[1], &nanoseconds, sizeof(nanoseconds)) == sizeof(nanoseconds) ? 0 : 1);
  }
  double nanoseconds = 0;
  OTT_CHECK(read(pipe_ends[0], &nanoseconds, sizeof(nanoseconds)) == sizeof(nanoseconds)) << "a child failed";
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  waitpid(child, nullptr, 0);
  return nanoseconds;
}

// In turn, as what disturbs only ever adds.
int Main() {
  constexpr int kTurns = 7;
  const Variant variants[] = {{}, {true}, {true, true}, {true, false, true}};
  BenchmarkLimits limits;
  double ratio = 0;
  for (const int iterations : {480, 10'000, 100'000}) {
    double best[std::size(variants)];
    std::fill(std::begin(best), std::end(best), std::numeric_limits<double>::infinity());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < std::size(variants); ++i)
        best[i] = std::min(best[i], MeasureInChild(variants[i], iterations));
    }
    const double arrivals = best[1] - best[0];
    const double keeping = best[3] - best[1];
    std::printf(
        "%6d iterations: %.0f ns each, %.0f ns for arrivals (%.0f ns with CPU times), %.0f ns for keeping "
        "them\n",
        iterations, best[0], arrivals, best[2] - best[0], keeping);
    ratio = keeping / arrivals;
  }
  limits.AtMost("100,000 iterations: keeping them, to their arrivals", ratio, 1, "  ");
  return limits.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace ott::saved

int main() { return ott::saved::Main(); }
