// Measures what dumps in every tenth iteration cost a training that uses all cores: without dumps, with
// writer threads of ordinary priority, and in the background, in turn in one run.
//
//   bazel run //core/dumper:writer_priority_benchmark

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/dumper/tensor_dumper.h"

namespace ott {
namespace {

constexpr int kIterations = 100, kEvery = 10, kRounds = 8;
constexpr int64_t kNumbers = 1 << 19;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A few milliseconds on a core.
void Work() {
  volatile double sum = 0;
  for (int i = 0; i < 400'000; ++i) sum = sum + std::sqrt(static_cast<double>(i));
}

// All wait for each other as in MPI: without giving up their cores.
class Barrier {
 public:
  explicit Barrier(int num_threads) : num_threads_(num_threads) {}
  void Wait() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == num_threads_) {
      arrived_ = 0;
      round_ = round + 1;
    }
    while (round_.load() == round) {
    }
  }

 private:
  const int num_threads_;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
};

// Seconds of each iteration. dumper: null for none.
std::vector<double> Train(TensorDumper* dumper, const std::vector<float>& tensor) {
  const int num_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Barrier barrier(num_threads);
  std::vector<std::thread> others;
  for (int i = 1; i < num_threads; ++i) {
    others.emplace_back([&] {
      for (int iteration = 0; iteration < kIterations; ++iteration) {
        Work();
        barrier.Wait();
      }
    });
  }
  std::vector<double> seconds;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const double start = Now();
    Work();
    if (dumper != nullptr && iteration % kEvery == 0) {
      absl::Status status = dumper->AddTensorData("weights", TensorView(tensor.data(), {kNumbers}));
      status.Update(dumper->Dump());
      OTT_CHECK(status.ok()) << std::string(status.message());
    }
    barrier.Wait();
    seconds.push_back(Now() - start);
  }
  for (std::thread& other : others) other.join();
  return seconds;
}

struct Variant {
  const char* name;
  bool dumps;
  bool background;
  std::vector<double> seconds;
};

void Run() {
  std::string dir = "/dev/shm/writer_priority_XXXXXX";
  OTT_CHECK(mkdtemp(dir.data()) != nullptr) << dir;
  std::vector<float> tensor(kNumbers);
  for (int64_t i = 0; i < kNumbers; ++i) tensor[i] = std::sin(static_cast<float>(i));
  std::vector<Variant> variants = {{"no dumps", false, false, {}},
                                   {"dumps, writers of ordinary priority", true, false, {}},
                                   {"dumps, writers in the background", true, true, {}}};
  for (int round = 0; round < kRounds; ++round) {
    for (Variant& variant : variants) {
      TensorDumper dumper;
      TensorDumperOptions options;
      options.dir = dir;
      options.num_writer_threads = 1;
      options.reserved_bytes = 0;
      options.writers_in_background = variant.background;
      OTT_CHECK(dumper.Enable(options).ok()) << dir;
      const std::vector<double> seconds = Train(variant.dumps ? &dumper : nullptr, tensor);
      variant.seconds.insert(variant.seconds.end(), seconds.begin(), seconds.end());
      OTT_CHECK(dumper.Disable().ok()) << dir;
    }
  }
  std::filesystem::remove_all(dir);
  double base_mean = 0, base_median = 0;
  std::printf("%-38s %10s %10s %8s %8s\n", "an iteration", "mean", "median", "ratio", "ratio");
  for (Variant& variant : variants) {
    double mean = 0;
    for (const double seconds : variant.seconds)
      mean += seconds / static_cast<double>(variant.seconds.size());
    std::sort(variant.seconds.begin(), variant.seconds.end());
    const double median = variant.seconds[variant.seconds.size() / 2];
    if (base_mean == 0) base_mean = mean, base_median = median;
    std::printf("%-38s %7.3f ms %7.3f ms %8.3f %8.3f\n", variant.name, mean * 1e3, median * 1e3,
                mean / base_mean, median / base_median);
  }
}

}  // namespace
}  // namespace ott

int main() {
  ott::Run();
  return 0;
}
