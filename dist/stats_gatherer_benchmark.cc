// What gathering costs, by the number of ranks: CPU time on rank 0, bytes that any one rank receives, memory.
//
//   bazel run -c opt //dist:stats_gatherer_benchmark

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "ott/core/base/check.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/dist/simulated_communicator.h"
#include "ott/dist/stats_gatherer.h"

namespace ott {
namespace {

constexpr int kFanOut = 32;
constexpr int kNumMeasurements = 200;

// 200 measurements of 50 intervals each, around values of the rank's own.
StopwatchStats MakeStats(int rank) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::normal_distribution<double> noise(1.0, 0.05);
  StopwatchStats stats;
  stats.set_num_measured_iters(50);
  DurationStatistics iterations;
  for (int i = 0; i < 50; ++i) iterations.AddSeconds(0.25 * noise(random));
  *stats.mutable_iteration() = iterations.ToProto();
  for (int m = 0; m < kNumMeasurements; ++m) {
    DurationStatistics intervals;
    for (int i = 0; i < 50; ++i) intervals.AddSeconds(1e-3 * noise(random));
    Measurement& measurement = *stats.add_measurements();
    measurement.set_name("layer" + std::to_string(m / 4) + ".part" + std::to_string(m % 4));
    measurement.set_collective(m % 50 == 0);
    *measurement.mutable_per_interval() = intervals.ToProto();
    *measurement.mutable_per_iteration() = intervals.ToProto();
  }
  return stats;
}

// Those that report to `rank` first, so that nobody waits; rank 0 last.
template <typename Gather>
void BelowFirst(int rank, int size, const Gather& gather) {
  for (int64_t child = int64_t{rank} * kFanOut + 1; child <= (rank + 1) * int64_t{kFanOut} && child < size;
       ++child) {
    BelowFirst(static_cast<int>(child), size, gather);
  }
  gather(rank);
}

void BM_Gather(benchmark::State& state) {
  const int size = static_cast<int>(state.range(0));
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank) hosts.push_back("node" + std::to_string(rank / 8));
  StatsGathererOptions options;
  options.fan_out = kFanOut;
  std::vector<std::unique_ptr<StatsGatherer>> ranks;
  for (auto& communicator : CreateSimulatedCommunicators(hosts)) {
    ranks.push_back(std::make_unique<StatsGatherer>(std::move(communicator), options));
  }
  const StopwatchStats of_root = MakeStats(0);
  for (auto unused : state) {
    state.PauseTiming();
    BelowFirst(0, size, [&](int rank) {
      if (rank == 0) return;
      OTT_CHECK(ranks[rank]->Gather(MakeStats(rank), Deadline::Now()).ok()) << "rank " << rank;
    });
    state.ResumeTiming();
    const absl::StatusOr<ClusterStats> stats = ranks[0]->Gather(of_root, Deadline::Now());
    OTT_CHECK(stats.ok() && stats->num_ranks() == size) << stats.status();
  }
  int64_t most_received = 0;
  for (const auto& rank : ranks) most_received = std::max(most_received, rank->num_bytes_received());
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  state.counters["MB_received_by_one_rank"] =
      static_cast<double>(most_received) / static_cast<double>(state.iterations()) / 1e6;
  state.counters["MB_of_all_simulated_ranks"] = static_cast<double>(usage.ru_maxrss) / 1e3;
}
BENCHMARK(BM_Gather)->Arg(8)->Arg(32)->Arg(256)->Arg(1024)->Arg(4096)->Arg(16384)->Iterations(1)->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace ott

BENCHMARK_MAIN();
