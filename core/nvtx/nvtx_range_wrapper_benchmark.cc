// Measures what a range costs, each figure beside its limit. Ratios count, not nanoseconds: they hold on
// other machines.
//
//   bazel run //core/nvtx:nvtx_range_wrapper_benchmark

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>

#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"

namespace ott {
namespace {

BENCHMARK(EmptyFunctionPair)->Name("Off_EmptyFunctionPair");

void PushAndPop(benchmark::State& state) {
  for (auto _ : state) {
    NvtxRangeWrapper::Get().Push("name");
    benchmark::ClobberMemory();
    NvtxRangeWrapper::Get().Pop();
  }
}
BENCHMARK(PushAndPop)->Name("Off_PushAndPop");
BENCHMARK(PushAndPop)->Name("On_PushAndPop");

void Scope(benchmark::State& state) {
  for (auto _ : state) {
    OTT_NVTX_SCOPE("name");
    benchmark::ClobberMemory();
  }
}
BENCHMARK(Scope)->Name("Off_Scope");
BENCHMARK(Scope)->Name("On_Scope");

void On_RawPushAndPop(benchmark::State& state) {
  for (auto _ : state) {
    nvtxRangePushA("name");
    benchmark::ClobberMemory();
    nvtxRangePop();
  }
}
BENCHMARK(On_RawPushAndPop);

void SetLimits(const FastestRuns& ns, BenchmarkLimits& limits) {
  limits.AtMost("off, push and pop", ns["Off_PushAndPop"], 2, "ns");
  limits.AtMost("off, scope", ns["Off_Scope"], 2, "ns");
  limits.AtMost("off, push and pop, to two calls of an empty function",
                ns["Off_PushAndPop"] / ns["Off_EmptyFunctionPair"], 1.5, "x ");
  limits.AtMost("off, scope, to two calls of an empty function",
                ns["Off_Scope"] / ns["Off_EmptyFunctionPair"], 1.5, "x ");
  limits.AtMost("on, push and pop, to nvtxRangePushA and nvtxRangePop",
                ns["On_PushAndPop"] / ns["On_RawPushAndPop"], 1.2, "x ");
  limits.AtMost("on, scope with a registered name, to the same", ns["On_Scope"] / ns["On_RawPushAndPop"], 1.2,
                "x ");
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  // Before the first call of NVTX, which reads it.
  setenv("NVTX_INJECTION64_PATH", "core/nvtx/libnvtx_injection_for_benchmark.so", 0);
  return ott::RunOffAndOn(
      argc, argv, [] { return ott::NvtxRangeWrapper::Get().Enable({}); }, ott::SetLimits);
}
