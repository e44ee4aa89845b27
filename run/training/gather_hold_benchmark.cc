// Measures how long gathering statistics of 200 measurements holds each rank: what its FinishIter() takes in
// the iterations of a print interval, beyond what it takes if nothing is gathered.
//
//   bazel build //run/training:gather_hold_benchmark
//   third_party/mpi/mpirun.sh 8 bazel-bin/run/training/gather_hold_benchmark

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/run/training/training_run.h"

namespace ott {
namespace {

constexpr int kNumMeasurements = 200;
constexpr int kNumGathers = 25;
constexpr int kInterval = 10;
constexpr double kLimitMicroseconds = 200;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

int Main() {
  const auto ranks = CreateMpiCommunicator();
  OTT_CHECK(ranks.ok()) << ranks.status();
  Config config;
  config.mutable_stopwatch()->set_print_every_n_iters(kInterval);
  config.mutable_stopwatch()->add_collective_measurements("layer0.part0");
  const auto run = TrainingRun::Start(**ranks, config);
  OTT_CHECK(run.ok()) << run.status();
  // Nobody reads so many tables.
  OTT_CHECK(std::freopen("/dev/null", "w", stdout) != nullptr) << "/dev/null";
  std::vector<std::unique_ptr<std::string>> names;
  for (int i = 0; i < kNumMeasurements; ++i) {
    names.push_back(
        std::make_unique<std::string>("layer" + std::to_string(i / 4) + ".part" + std::to_string(i % 4)));
  }
  std::vector<double> microseconds;  // of each FinishIter()
  for (int iteration = 0; iteration < kInterval * (kNumGathers + 1); ++iteration) {
    for (const auto& name : names) {
      const Stopwatch::Scope scope(*name);
    }
    // Stands for the last collective of an iteration, and for work in which the machine's few cores are free
    // again.
    OTT_CHECK((*ranks)->Barrier(Deadline::After(std::chrono::seconds(60))).ok()) << "barrier";
    std::this_thread::sleep_for(std::chrono::milliseconds(10) +
                                std::chrono::milliseconds(1) * (*ranks)->rank());
    const auto start = std::chrono::steady_clock::now();
    OTT_CHECK((*run)->FinishIter().ok()) << "iteration " << iteration;
    microseconds.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  const double usual = Median(microseconds);
  std::vector<double> held;
  for (int gather = 1; gather <= kNumGathers; ++gather) {
    // From the iteration that is printed after to the one before the next.
    const auto begin = microseconds.begin() + gather * kInterval - 1;
    held.push_back(std::accumulate(begin, begin + kInterval, 0.0) - kInterval * usual);
  }
  const auto medians =
      (*ranks)->Gather(0, std::to_string(Median(held)), Deadline::After(std::chrono::seconds(60)));
  OTT_CHECK(medians.ok()) << medians.status();
  if ((*ranks)->rank() != 0) return 0;
  bool holds = true;
  for (size_t rank = 0; rank < medians->size(); ++rank) {
    const double median = std::stod((*medians)[rank]);
    holds = holds && median <= kLimitMicroseconds;
    std::fprintf(stderr,
                 "rank %zu held by a gather of %d measurements: %7.1f us (median of %d)  at most %.0f  %s\n",
                 rank, kNumMeasurements, median, kNumGathers, kLimitMicroseconds,
                 median <= kLimitMicroseconds ? "ok" : "MISSED");
  }
  std::fprintf(stderr, "any FinishIter(): %.1f us\n", usual);
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace ott

int main() { return ott::Main(); }
