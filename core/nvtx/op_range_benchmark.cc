// Measures what an op range costs, each figure beside its limit. Ratios count, not nanoseconds: they hold on
// other machines.
//
//   bazel run //core/nvtx:op_range_benchmark

#include <nvtx3/nvToolsExt.h>

#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/clock.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {
namespace {

BENCHMARK(EmptyFunctionPair)->Name("Off_EmptyFunctionPair");

// The least that a profiler's own range around an operation costs: NVTX and when it began and ended.
void On_RawRangeAndClock(benchmark::State& state) {
  const Clock& clock = Clock::Fastest();
  for (auto _ : state) {
    nvtxRangePushA("linear");
    benchmark::DoNotOptimize(clock.Ticks());
    nvtxRangePop();
    benchmark::DoNotOptimize(clock.Ticks());
  }
}
BENCHMARK(On_RawRangeAndClock);

void Linear(benchmark::State& state) {
  const float data = 0;
  const TensorView input(&data, DType::kBFloat16, {32, 128}, {Device::Kind::kCuda, 0, nullptr});
  const TensorView weight(&data, DType::kBFloat16, {64, 128}, {Device::Kind::kCuda, 0, nullptr});
  const TensorView bias(&data, DType::kBFloat16, {64}, {Device::Kind::kCuda, 0, nullptr});
  for (auto _ : state) {
    OpRange op("linear", {{"input", input}, {"weight", weight}, {"bias", bias}});
    benchmark::ClobberMemory();
  }
}
BENCHMARK(Linear)->Name("Off_Linear");
BENCHMARK(Linear)->Name("On_Linear");

void SetLimits(const FastestRuns& ns, BenchmarkLimits& limits) {
  limits.AtMost("off, 3 tensors", ns["Off_Linear"], 2, "ns");
  limits.AtMost("off, 3 tensors, to two calls of an empty function",
                ns["Off_Linear"] / ns["Off_EmptyFunctionPair"], 1.5, "x ");
  limits.AtMost("on, shapes of 3 tensors", ns["On_Linear"], 250, "ns");
  limits.AtMost("on, to nvtxRangePushA, nvtxRangePop and two clock reads",
                ns["On_Linear"] / ns["On_RawRangeAndClock"], 10, "x ");
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  return ott::RunOffAndOn(
      argc, argv, [] { return ott::OpRanges::Get().Enable({}); }, ott::SetLimits);
}
