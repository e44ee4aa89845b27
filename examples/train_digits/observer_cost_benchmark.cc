// Measures what observation costs the example, as a share of an iteration.
//
// The stopwatch and the NVTX ranges, on and off, twice: the calls alone, timed over many iterations without
// any work in them, which resolves far less than a nanosecond. Then iterations with work, on, off and
// uninstrumented in turn, whose medians show that nothing else hides there. Then everything that the example
// switches on, with dumps and cross-checks of one rank: the calls alone, and how much longer iterations take.
// The cost depends on where in memory the program happens to lie: the same work takes up to 15 % more or
// less. Prints FAILED and ends with 1 where a share is beyond its limit.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "examples/train_digits/digits.h"
#include "examples/train_digits/mlp.h"
#include "ott/config.h"
#include "ott/core/base/check.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/device_sync.h"
#include "ott/local_communicator.h"
#include "ott/nvtx_range_wrapper.h"
#include "ott/stopwatch.h"
#include "ott/tensor_dumper.h"
#include "ott/training_run.h"

namespace ott::examples {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

struct Helpers {
  Stopwatch stopwatch{{Clock::Fastest(), SynchronizeDevice}};
  NvtxRangeWrapper ranges{{SynchronizeDevice}};

  void Enable() {
    OTT_CHECK(stopwatch.Enable({}).ok()) << "the stopwatch";
    // Without NVTX in this build there is nothing to pay for it.
    const absl::Status status = ranges.Enable({});
    OTT_CHECK(status.ok() || absl::IsUnimplemented(status)) << status;
  }
};

// The calls that one iteration of train_digits makes, around work or around nothing.
template <typename Work>
void InstrumentedIteration(Helpers& helpers, const Work& work) {
  {
    const NvtxRangeWrapper::Scope range(helpers.ranges, "iteration");
    static Stopwatch::Measurement measurements[] = {
        Stopwatch::Measurement("data"), Stopwatch::Measurement("forward"), Stopwatch::Measurement("backward"),
        Stopwatch::Measurement("allreduce"), Stopwatch::Measurement("step")};
    for (int part = 0; part < 5; ++part) {
      const Stopwatch::Scope scope(helpers.stopwatch, measurements[part]);
      work(part);
    }
  }
  helpers.stopwatch.FinishIter();
}

// Seconds that the calls of one iteration take by themselves.
double SecondsOfCalls(Helpers& helpers) {
  constexpr int kIterations = 200000;
  const auto no_work = [](int part) { asm volatile("" : : "r"(part) : "memory"); };
  for (int i = 0; i < 1000; ++i) InstrumentedIteration(helpers, no_work);
  const SteadyClock::time_point start = SteadyClock::now();
  for (int i = 0; i < kIterations; ++i) InstrumentedIteration(helpers, no_work);
  return SecondsSince(start) / kIterations;
}

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool Report(const char* what, double cost, double iteration, double limit) {
  const double share = cost / iteration;
  std::printf("  %-28s %9.1f ns   %8.4f %% of an iteration (limit %.1f %%)%s\n", what, cost * 1e9,
              100 * share, 100 * limit, share <= limit ? "" : "   FAILED");
  return share <= limit;
}

// CPU time of this thread, or of the whole process.
double CpuSeconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Switches on what the example's main does by default, with NVTX if this build has it. dumps_and_checks:
// every 100 iterations.
Config RunConfig(const std::string& run_dir, bool dumps_and_checks) {
  Config config;
  config.set_run_dir(run_dir);
  config.mutable_stopwatch()->set_num_warmup_iters(5);
  config.mutable_stopwatch()->add_collective_measurements("allreduce");
  if (NvtxRangeWrapper ranges{{SynchronizeDevice}}; ranges.Enable({}).ok()) config.mutable_nvtx();
  if (!dumps_and_checks) return config;
  config.mutable_dump()->mutable_iterations()->set_every(100);
  config.mutable_cross_check()->mutable_iterations()->set_every(100);
  return config;
}

// An iteration but its FinishIter(), with all tensors offered to the dumper.
template <typename Train>
void ObservedIteration(Mlp& mlp, const Train& train) {
  OTT_NVTX_SCOPE("iteration");
  static Stopwatch::Measurement measurements[] = {
      Stopwatch::Measurement("data"), Stopwatch::Measurement("forward"), Stopwatch::Measurement("backward"),
      Stopwatch::Measurement("allreduce"), Stopwatch::Measurement("step")};
  for (int part = 0; part < 5; ++part) {
    const Stopwatch::Scope scope(measurements[part]);
    train(part);
  }
  TensorDumper::RunIfEnabled([&](TensorDumper& dumper) {
    for (const Parameter& parameter : mlp.parameters()) {
      for (const auto& [kind, values] :
           {std::pair("weights.", &parameter.value), std::pair("gradients.", &parameter.gradient)}) {
        const absl::Status status = dumper.AddTensorData(
            kind + parameter.name, TensorView(values->data(), parameter.shape), DumpFormat::kBinary);
        OTT_CHECK(status.ok()) << status;
      }
    }
  });
}

// Computes in registers alone, which no call slows down.
[[gnu::noinline]] void Spin(int64_t count) {
  for (int64_t i = 0; i < count; ++i) asm volatile("" : : "r"(i));
}

// How far to Spin() for so long on a CPU.
int64_t CountOf(double seconds) {
  constexpr int64_t kCount = 100'000'000;
  const double start = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  Spin(kCount);
  return static_cast<int64_t>(seconds * kCount / (CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - start));
}

// Returns true if a run costs less than its limit of a short iteration, by the CPU time of the thread that
// trains, which other work on the machine leaves alone. Iterations with and without it take turns.
template <typename Train>
bool ReportRun(Mlp& mlp, const Train& train, const char* what, bool dumps_and_checks) {
  char dir[] = "/tmp/observer_cost.XXXXXX";
  OTT_CHECK(mkdtemp(dir) != nullptr) << dir;
  const std::unique_ptr<Communicator> ranks = CreateLocalCommunicator();
  absl::StatusOr<std::unique_ptr<TrainingRun>> run =
      TrainingRun::Start(*ranks, RunConfig(dir + std::string("/run"), dumps_and_checks));
  OTT_CHECK(run.ok()) << run.status();
  constexpr double kShortIteration = 0.15e-3;
  constexpr int kRounds = 60;
  // A dump and a cross-check in each round.
  constexpr int kIterations = 100;
  const int64_t count_of_part = CountOf(kShortIteration / 5);
  const auto spin = [&](int) { Spin(count_of_part); };
  std::vector<double> share, share_of_all_threads, cost, none;
  const auto measure = [&](const auto& work, clockid_t clock, bool observes) {
    const double start = CpuSeconds(clock);
    for (int i = 0; i < kIterations; ++i) {
      if (observes) {
        ObservedIteration(mlp, work);
        OTT_CHECK((*run)->FinishIter().ok()) << "iteration " << (*run)->iteration();
      } else {
        for (int part = 0; part < 5; ++part) work(part);
      }
    }
    return (CpuSeconds(clock) - start) / kIterations;
  };
  for (int round = 0; round < kRounds; ++round) {
    const double bare = measure(train, CLOCK_THREAD_CPUTIME_ID, false);
    share.push_back(measure(train, CLOCK_THREAD_CPUTIME_ID, true) / bare - 1);
    share_of_all_threads.push_back(measure(train, CLOCK_PROCESS_CPUTIME_ID, true) / bare - 1);
    none.push_back(measure(spin, CLOCK_THREAD_CPUTIME_ID, false));
    cost.push_back(measure(spin, CLOCK_THREAD_CPUTIME_ID, true) - none.back());
  }
  run->reset();
  std::filesystem::remove_all(dir);
  std::printf(
      "%s, CPU time: with work %+.2f %% (its other threads included: %+.2f %%)\n"
      "of iterations of %.2f ms that compute in registers:\n",
      what, 100 * Median(share), 100 * Median(share_of_all_threads), 1e3 * Median(none));
  return Report(dumps_and_checks ? "everything on" : "statistics and recorder", Median(cost), Median(none),
                0.02);
}

int Main(const char* data) {
  const absl::StatusOr<Digits> digits = ReadDigits(data);
  OTT_CHECK(digits.ok()) << digits.status();
  const Split split = SplitDigits(*digits);
  const BatchSampler sampler(split.train, 128, 1);
  Mlp mlp(64, 1, Kernel::kReference);
  Digits shard;
  int64_t iteration = 0;
  const auto train = [&](int part) {
    // One rank's share of four, as in tools/demo.
    if (part == 0) shard = sampler.Shard(iteration++, 0, 4);
    if (part == 1) mlp.Forward(shard);
    if (part == 2) mlp.Backward(shard);
    if (part == 4) mlp.Step(0.1f, 0.9f, 1.0f / 128);
  };

  Helpers off, on;
  on.Enable();
  std::vector<double> none_seconds, off_seconds, on_seconds;
  for (int round = 0; round < 3000; ++round) {
    SteadyClock::time_point start = SteadyClock::now();
    for (int part = 0; part < 5; ++part) train(part);
    none_seconds.push_back(SecondsSince(start));
    start = SteadyClock::now();
    InstrumentedIteration(off, train);
    off_seconds.push_back(SecondsSince(start));
    start = SteadyClock::now();
    InstrumentedIteration(on, train);
    on_seconds.push_back(SecondsSince(start));
  }
  const double none = Median(none_seconds);
  std::printf("one iteration of the example, uninstrumented: %.1f us (median of %zu)\n", none * 1e6,
              none_seconds.size());
  std::printf("with work, in turn: off %+.3f %%, on %+.3f %%\n", 100 * (Median(off_seconds) / none - 1),
              100 * (Median(on_seconds) / none - 1));
  std::printf("the calls alone:\n");
  const bool off_is_free = Report("everything off", SecondsOfCalls(off), none, 0.001);
  const bool on_is_cheap = Report("stopwatch and ranges on", SecondsOfCalls(on), none, 0.01);
  const bool run_is_cheap = ReportRun(mlp, train, "a training run", false);
  const bool everything_is_cheap =
      ReportRun(mlp, train, "the same with dumps and cross-checks every 100 iterations", true);
  return off_is_free && on_is_cheap && run_is_cheap && everything_is_cheap ? 0 : 1;
}

}  // namespace
}  // namespace ott::examples

int main(int argc, char** argv) {
  return ott::examples::Main(argc > 1 ? argv[1] : "examples/train_digits/data/digits.csv.gz");
}
