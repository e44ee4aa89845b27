// Measures how long `ott whatif` takes for a large job: a pipeline of 8 stages in 8 replicas, 20 steps of
// 2,000 operations on each of the 64 ranks, replayed for every rank, operation, stage and replica. CPU time,
// and the most memory held.
//
//   bazel run //questions/saved:whatif_benchmark

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/questions/saved/timeline.h"
#include "ott/questions/saved/timeline_job.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

constexpr int kStages = 8;
constexpr int kReplicas = 8;
constexpr int kSteps = 20;
// Each has a forward and a backward computation and up to four messages.
constexpr int kMicrobatches = 333;

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double PeakMegabytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// One operation a line; times are made up, in the order in which a pipeline has them.
void WriteTimeline(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  OTT_CHECK(file != nullptr) << path;
  std::fputs("[", file);
  int64_t count = 0;
  const auto add = [&](int rank, int step, const char* name, int sequence, double start, double duration,
                       int track) {
    std::fprintf(file,
                 "%s{\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"ph\":"
                 "\"X\",\"args\":{\"step\":%d,\"model_chunk\":0,\"mb_id\":%d,\"seq_id\":%d}}\n",
                 count++ == 0 ? "" : ",", name, name, rank % kReplicas, rank * 5 + track, start, duration,
                 step, sequence, sequence);
  };
  for (int rank = 0; rank < kStages * kReplicas; ++rank) {
    const int stage = rank / kReplicas;
    for (int step = 0; step < kSteps; ++step) {
      const double begin = step * 1e8;
      for (int i = 0; i < kMicrobatches; ++i) {
        const double noise = (rank * 7919 + step * 104729 + i * 1299709) % 1000 / 1000.0;
        const double forward = begin + 1000.0 * (i + stage) + noise;
        const double backward = begin + 1e6 + 2000.0 * (i + kStages - stage) + noise;
        if (stage > 0) add(rank, step, "forward-recv", i, forward - 20, 10, 1);
        add(rank, step, "forward-compute", i, forward, 900 + 50 * noise, 0);
        if (stage + 1 < kStages) add(rank, step, "forward-send", i, forward + 970, 10, 1);
        if (stage + 1 < kStages) add(rank, step, "backward-recv", i, backward - 20, 10, 1);
        add(rank, step, "backward-compute", i, backward, 1900 + 50 * noise, 0);
        if (stage > 0) add(rank, step, "backward-send", i, backward + 1970, 10, 1);
      }
      add(rank, step, "grads-reduce-scatter", 0, begin + 3e6, 5000, 3);
      add(rank, step, "optimizer-clip-main-grad", 0, begin + 3.01e6, 100, 3);
      add(rank, step, "optimizer", 0, begin + 3.02e6, 3000, 0);
    }
    for (int track = 0; track < 5; ++track) {
      std::fprintf(file,
                   ",{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"PP "
                   "rank %d, TP rank 0, x\"}}\n",
                   rank % kReplicas, rank * 5 + track, stage);
    }
  }
  std::fputs("]", file);
  OTT_CHECK(std::fclose(file) == 0) << path;
}

int Run() {
  const char* const directory = std::getenv("TMPDIR");
  const std::string path = absl::StrCat(directory != nullptr ? directory : "/tmp", "/whatif_benchmark.json");
  WriteTimeline(path);
  const double begin = CpuSeconds();
  absl::StatusOr<Timeline> timeline = ReadTimeline(path);
  std::remove(path.c_str());
  OTT_CHECK(timeline.ok()) << timeline.status().ToString();
  const size_t num_operations = timeline->events.size();
  const double read = CpuSeconds();
  const absl::StatusOr<ReplayJob> job = MakeJob(*std::move(timeline));
  OTT_CHECK(job.ok()) << job.status().ToString();
  const double made = CpuSeconds();
  const WhatIfAnswer answer = AnswerWhatIf(*job);
  const double answered = CpuSeconds();
  std::printf("%zu operations of %d ranks: read in %.2f s, dependencies in %.2f s, replays in %.2f s\n",
              num_operations, answer.num_ranks(), read - begin, made - read, answered - made);
  BenchmarkLimits limits;
  limits.AtMost("all of it", answered - begin, 10, "s ");
  limits.AtMost("peak memory", PeakMegabytes(), 1024, "MB");
  return limits.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace ott::saved

int main() { return ott::saved::Run(); }
