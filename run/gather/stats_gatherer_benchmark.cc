// Measures what gathering costs, by the number of ranks: CPU time on rank 0, bytes that any one rank
// receives, memory.
//
//   bazel run //run/gather:stats_gatherer_benchmark

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
#include "ott/dist/comm/simulated_communicator.h"
#include "ott/run/gather/stats_gatherer.h"

namespace ott {
namespace {

constexpr int kFanOut = 32;
constexpr int kNumMeasurements = 200;

OwnTimeStats MakeOwnTime(double seconds) {
  OwnTimeStats own;
  for (SteadyTimeStats* time : {own.mutable_all(), own.mutable_window()}) {
    time->set_seconds(seconds);
    time->set_standard_error(0.01 * seconds);
    time->set_degrees_of_freedom(7);
  }
  return own;
}

// 200 measurements of 50 intervals each, around values of the rank's own.
StopwatchStats MakeStats(int rank) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::normal_distribution<double> noise(1.0, 0.05);
  StopwatchStats stats;
  stats.set_num_measured_iters(50);
  DurationStatistics iterations;
  for (int i = 0; i < 50; ++i) iterations.AddSeconds(0.25 * noise(random));
  *stats.mutable_iteration() = iterations.ToProto();
  OwnWorkStats& work = *stats.mutable_own_work();
  work.set_waiting_seconds(4 * 50e-3);
  work.set_num_watched_iters(50);
  work.set_cpu_seconds(50 * 0.2);
  *work.mutable_time() = MakeOwnTime(0.25 * noise(random));
  for (int m = 0; m < kNumMeasurements; ++m) {
    DurationStatistics intervals;
    for (int i = 0; i < 50; ++i) intervals.AddSeconds(1e-3 * noise(random));
    Measurement& measurement = *stats.add_measurements();
    measurement.set_name("layer" + std::to_string(m / 4) + ".part" + std::to_string(m % 4));
    measurement.set_collective(m % 50 == 0);
    *measurement.mutable_per_interval() = intervals.ToProto();
    *measurement.mutable_per_iteration() = intervals.ToProto();
    if (!measurement.collective()) *measurement.mutable_own() = MakeOwnTime(1e-3 * noise(random));
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
  int64_t most_received = 0;
  for (auto unused : state) {
    state.PauseTiming();
    std::vector<std::unique_ptr<Communicator>> ranks = CreateSimulatedCommunicators(hosts);
    StatsGatherer root(std::move(ranks[0]), options);
    const StopwatchStats of_root = MakeStats(0);
    BelowFirst(0, size, [&](int rank) {
      if (rank == 0) return;
      // Lives no longer than it is needed, so that memory is that of one rank after the other.
      StatsGatherer gatherer(std::move(ranks[rank]), options);
      OTT_CHECK(gatherer.Gather(MakeStats(rank), Deadline::Now()).ok()) << "rank " << rank;
      most_received = std::max(most_received, gatherer.num_bytes_received());
    });
    state.ResumeTiming();
    const absl::StatusOr<ClusterStats> stats = root.Gather(of_root, Deadline::Now());
    OTT_CHECK(stats.ok() && stats->num_ranks() == size) << stats.status();
    most_received = std::max(most_received, root.num_bytes_received());
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  state.counters["MB_received_by_one_rank"] = static_cast<double>(most_received) / 1e6;
  state.counters["MB_peak_of_the_process"] = static_cast<double>(usage.ru_maxrss) / 1e3;
}
BENCHMARK(BM_Gather)->Arg(8)->Arg(32)->Arg(256)->Arg(1024)->Arg(4096)->Arg(16384)->Iterations(1)->Unit(
    benchmark::kMillisecond);

// Measures how long a rank that no other reports to is held.
void BM_HoldOfALeaf(benchmark::State& state) {
  auto ranks = CreateSimulatedCommunicators(std::vector<std::string>(8, "node"));
  StatsGatherer leaf(std::move(ranks[1]), {});
  const StopwatchStats mine = MakeStats(1);
  for (auto unused : state) {
    OTT_CHECK(leaf.Gather(mine, Deadline::Now()).ok()) << "post";
    state.PauseTiming();
    OTT_CHECK(ranks[0]->Receive(1, 0, Deadline::Now()).ok()) << "receive";
    state.ResumeTiming();
  }
}
BENCHMARK(BM_HoldOfALeaf)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ott

BENCHMARK_MAIN();
