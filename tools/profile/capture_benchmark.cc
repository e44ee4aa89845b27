// Measures what a captured range costs the program, and what writing it costs the rest of the machine.
//
//   bazel run //tools/profile:capture_benchmark

#include <nvtx3/nvToolsExt.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "tools/profile/profile_program.h"
#include "tools/profile/recorder.h"

namespace ott::profile {
namespace {

constexpr int kBatch = 4000;

void TwoClockReads(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Now());
    benchmark::DoNotOptimize(Now());
  }
}
BENCHMARK(TwoClockReads);

// Ranges as a training program makes them: a few thousand, then something else, so that ott keeps up.
template <typename PushPop>
void RunInBatches(benchmark::State& state, PushPop push_and_pop) {
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch; ++i) push_and_pop();
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    state.ResumeTiming();
  }
}

void PushAndPop(benchmark::State& state) {
  RunInBatches(state, [] {
    nvtxRangePushA("forward, layer 12, step 7");
    benchmark::ClobberMemory();
    nvtxRangePop();
  });
}
BENCHMARK(PushAndPop)->Iterations(20 * kBatch);

void RegisteredPushAndPop(benchmark::State& state) {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("benchmark");
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "forward, layer 12, step 7");
  RunInBatches(state, [&] {
    nvtxDomainRangePushEx(domain, &attributes);
    benchmark::ClobberMemory();
    nvtxDomainRangePop(domain);
  });
}
BENCHMARK(RegisteredPushAndPop)->Iterations(20 * kBatch);

double CpuSeconds() {
  rusage usage;
  OTT_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double NanosecondsWithoutCapture() {
  const double start = CpuSeconds();
  constexpr int kCalls = 10'000'000;
  for (int i = 0; i < kCalls; ++i) {
    nvtxRangePushA("forward, layer 12, step 7");
    benchmark::ClobberMemory();
    nvtxRangePop();
  }
  return (CpuSeconds() - start) / kCalls * 1e9;
}

// In the captured process.
int RunCaptured(double off_ns) {
  FastestRuns ns;
  benchmark::RunSpecifiedBenchmarks(&ns);
  BenchmarkLimits limits;
  std::printf("\n");
  limits.AtMost("push and pop, added by the capture", ns["PushAndPop/iterations:80000"] - off_ns, 100, "ns");
  limits.AtMost("with a registered name, added by the capture",
                ns["RegisteredPushAndPop/iterations:80000"] - off_ns, 100, "ns");
  limits.AtMost("push and pop, to two clock reads", ns["PushAndPop/iterations:80000"] / ns["TwoClockReads"],
                2.5, "x ");
  return limits.all_hold() ? 0 : 1;
}

ProfiledProgram Profile(const ProfileOptions& options) {
  const absl::StatusOr<ProfiledProgram> program = ProfileProgram(options);
  OTT_CHECK(program.ok()) << program.status();
  return *program;
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc == 2) return RunCaptured(std::atof(argv[1]));

  const std::string directory =
      std::filesystem::temp_directory_path() / ("ott_capture_" + std::to_string(getpid()));
  ProfileOptions options;
  options.output = directory + "/benchmark.sqlite";
  options.library = std::filesystem::absolute("tools/profile/libott_capture.so");
  options.command = {argv[0], std::to_string(NanosecondsWithoutCapture()), "--benchmark_repetitions=5",
                     "--benchmark_min_time=0.1"};
  ProfiledProgram program = Profile(options);
  const int exit_code = WIFEXITED(program.wait_status) ? WEXITSTATUS(program.wait_status) : 1;

  constexpr int kRanges = 400'000;
  options.overwrite = true;
  options.command = {"tools/profile/nvtx_program_for_test", "threads", std::to_string(kRanges / 4)};
  const double before = CpuSeconds();
  program = Profile(options);
  const double cpu_seconds = CpuSeconds() - before;
  OTT_CHECK(program.captures.size() == 1 && program.captures[0].num_ranges == kRanges);
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.output));
  std::filesystem::remove_all(directory);
  BenchmarkLimits limits;
  limits.AtMost("writing 5 M ranges, CPU time of ott", cpu_seconds * 5e6 / kRanges, 60, "s ");
  limits.AtMost("a range in the file", bytes / kRanges, 150, "B ");
  return exit_code == 0 && limits.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace ott::profile

int main(int argc, char** argv) { return ott::profile::Main(argc, argv); }
