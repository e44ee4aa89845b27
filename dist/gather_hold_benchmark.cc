// How long each rank's FinishIter() is held where statistics of 200 measurements are gathered.
//
//   bazel build -c opt //dist:gather_hold_benchmark
//   third_party/mpi/mpirun.sh 8 bazel-bin/dist/gather_hold_benchmark

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/mpi_communicator.h"
#include "ott/dist/training_run.h"

namespace ott {
namespace {

constexpr int kNumMeasurements = 200;
constexpr int kNumGathers = 50;
constexpr double kLimitMicroseconds = 200;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

int Main() {
  const auto ranks = CreateMpiCommunicator();
  OTT_CHECK(ranks.ok()) << ranks.status();
  Config config;
  config.mutable_stopwatch()->set_print_every_n_iters(2);
  config.mutable_stopwatch()->add_collective_measurements("layer0.part0");
  const auto run = TrainingRun::Start(**ranks, config);
  OTT_CHECK(run.ok()) << run.status();
  // Of rank 0's tables, nobody reads fifty.
  OTT_CHECK(std::freopen("/dev/null", "w", stdout) != nullptr) << "/dev/null";
  std::vector<std::unique_ptr<std::string>> names;
  for (int i = 0; i < kNumMeasurements; ++i) {
    names.push_back(
        std::make_unique<std::string>("layer" + std::to_string(i / 4) + ".part" + std::to_string(i % 4)));
  }
  std::vector<double> held, not_held;
  for (int iteration = 0; iteration < 2 * kNumGathers; ++iteration) {
    for (const auto& name : names) {
      const Stopwatch::Scope scope(*name);
    }
    // As the last collective of an iteration, and work in which the machine's few cores are free again.
    OTT_CHECK((*ranks)->Barrier(Deadline::After(std::chrono::seconds(60))).ok()) << "barrier";
    std::this_thread::sleep_for(std::chrono::milliseconds(20) +
                                std::chrono::milliseconds(2) * (*ranks)->rank());
    const auto start = std::chrono::steady_clock::now();
    OTT_CHECK((*run)->FinishIter().ok()) << "iteration " << iteration;
    const double microseconds =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    (iteration % 2 == 1 ? held : not_held).push_back(microseconds);
  }
  const auto medians =
      (*ranks)->Gather(0, std::to_string(Median(held)), Deadline::After(std::chrono::seconds(60)));
  OTT_CHECK(medians.ok()) << medians.status();
  if ((*ranks)->rank() != 0) return 0;
  bool holds = true;
  for (size_t rank = 0; rank < medians->size(); ++rank) {
    const double median = std::stod((*medians)[rank]);
    holds = holds && (rank == 0 || median <= kLimitMicroseconds);
    std::fprintf(stderr, "rank %zu: FinishIter() with a gather of %d measurements: median of %d %8.1f us%s\n",
                 rank, kNumMeasurements, kNumGathers, median,
                 rank == 0                      ? "  (merges and prints)"
                 : median <= kLimitMicroseconds ? "  at most 200: ok"
                                                : "  at most 200: MISSED");
  }
  std::fprintf(stderr, "without: %.1f us\n", Median(not_held));
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace ott

int main() { return ott::Main(); }
