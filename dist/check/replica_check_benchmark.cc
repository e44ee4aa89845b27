// Measures what a check of equal replicas costs beside the digests it needs.
//
//   bazel run //dist/check:replica_check_benchmark

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/core/digest/digest.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/comm/local_communicator.h"

namespace ott {
namespace {

// 100 tensors, `megabytes` in all.
struct Tensors {
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> named;

  explicit Tensors(int64_t megabytes) : values(100, std::vector<float>(megabytes * 2500, 0.5f)) {
    for (const std::vector<float>& tensor : values) {
      named.push_back({"tensor" + std::to_string(named.size()),
                       {TensorView(tensor.data(), {static_cast<int64_t>(tensor.size())}), nullptr}});
    }
  }
};

void BM_DigestPass(benchmark::State& state) {
  const Tensors tensors(state.range(0));
  for (auto unused : state) {
    for (const NamedTensor& tensor : tensors.named) {
      const auto digest = ComputeDigest(tensor.tensor.view);
      OTT_CHECK(digest.ok()) << digest.status();
      benchmark::DoNotOptimize(digest->root);
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 1000000);
}

void BM_CheckOfEqualReplicas(benchmark::State& state) {
  const Tensors tensors(state.range(0));
  ReplicaCheck check(CreateLocalCommunicator(), std::chrono::seconds(60));
  for (auto unused : state) {
    // One rank has no replicas; its own part of the work is the same.
    OTT_CHECK(check.Run(0, tensors.named).outcome() == NOT_COMPARED);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 1000000);
}

BENCHMARK(BM_DigestPass)->Arg(1)->Arg(100)->Repetitions(5)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_CheckOfEqualReplicas)->Arg(1)->Arg(100)->Repetitions(5)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  ott::FastestRuns runs;
  benchmark::RunSpecifiedBenchmarks(&runs);
  ott::BenchmarkLimits limits;
  for (const char* megabytes : {"1", "100"}) {
    const std::string what = std::string("check of ") + megabytes + " MB, by a digest pass";
    limits.AtMost(what.c_str(),
                  runs[std::string("BM_CheckOfEqualReplicas/") + megabytes + "/repeats:5"] /
                      runs[std::string("BM_DigestPass/") + megabytes + "/repeats:5"],
                  1.3, "times");
  }
  return limits.all_hold() ? 0 : 1;
}
