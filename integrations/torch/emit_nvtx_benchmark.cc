// Measures what EmitNvtx adds to a training step of many small operations, run eagerly on one core, while a
// tool takes the ranges.
//
//   bazel run //integrations/torch:emit_nvtx_benchmark

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/integrations/torch/emit_nvtx.h"

namespace ott {
namespace {

struct Sizes {
  int64_t batch;
  int64_t features;
};

// Operations that take about 6 us, and 1 us, on average.
constexpr Sizes kSmall = {32, 64};
constexpr Sizes kTiny = {8, 16};

// Forward and backward pass of four layers, and a step of SGD: 111 operations of LibTorch 1.13.
class Training {
 public:
  explicit Training(Sizes sizes) : input_(at::randn({sizes.batch, sizes.features})) {
    for (Layer& layer : layers_) {
      layer.weight = at::randn({sizes.features, sizes.features}).requires_grad_();
      layer.bias = at::zeros({sizes.features}).requires_grad_();
    }
  }

  void Step() {
    at::Tensor hidden = input_;
    for (const Layer& layer : layers_) hidden = at::relu(at::linear(hidden, layer.weight, layer.bias));
    hidden.mean().backward();
    const at::NoGradGuard no_grad;
    for (Layer& layer : layers_) {
      for (at::Tensor* parameter : {&layer.weight, &layer.bias}) {
        parameter->sub_(parameter->grad(), 0.01);
        parameter->mutable_grad().reset();
      }
    }
  }

 private:
  struct Layer {
    at::Tensor weight;
    at::Tensor bias;
  };

  const at::Tensor input_;
  std::array<Layer, 4> layers_;
};

void Run(benchmark::State& state, Sizes sizes) {
  Training training(sizes);
  training.Step();
  for (auto _ : state) training.Step();
}

void Off(benchmark::State& state, Sizes sizes) { Run(state, sizes); }
BENCHMARK_CAPTURE(Off, Small, kSmall);
BENCHMARK_CAPTURE(Off, Tiny, kTiny);

// The least that LibTorch lets an observer of arguments cost.
void EmptyObserver(benchmark::State& state, Sizes sizes) {
  const auto begin = [](const at::RecordFunction&) { return std::unique_ptr<at::ObserverContext>(); };
  const at::CallbackHandle observer = at::addGlobalCallback(
      at::RecordFunctionCallback(begin, [](const at::RecordFunction&, at::ObserverContext*) {
      }).needsInputs(true));
  Run(state, sizes);
  at::removeCallback(observer);
}
BENCHMARK_CAPTURE(EmptyObserver, Small, kSmall);
BENCHMARK_CAPTURE(EmptyObserver, Tiny, kTiny);

void Emit(benchmark::State& state, Sizes sizes, bool record_json) {
  EmitNvtx::Options options;
  options.record_json = record_json;
  const auto emit_nvtx = EmitNvtx::Start(options);
  OTT_CHECK(emit_nvtx.ok()) << emit_nvtx.status().ToString();
  Run(state, sizes);
}
BENCHMARK_CAPTURE(Emit, LabelsSmall, kSmall, /*record_json=*/false);
BENCHMARK_CAPTURE(Emit, LabelsTiny, kTiny, /*record_json=*/false);
BENCHMARK_CAPTURE(Emit, JsonSmall, kSmall, /*record_json=*/true);

bool PrintLimits(const FastestRuns& ns) {
  const auto percent_added = [&ns](const char* with, const char* off) {
    return 100 * (ns[with] / ns[off] - 1);
  };
  const auto print = [](const char* what, double percent) { std::printf("%-58s %6.2f %%\n", what, percent); };
  BenchmarkLimits limits;
  std::printf("\n");
  limits.AtMost("labels with sizes, added to a step", percent_added("Emit/LabelsSmall", "Off/Small"), 15,
                "% ");
  print("  of which an empty observer of arguments costs", percent_added("EmptyObserver/Small", "Off/Small"));
  print("labels and JSON, added to that step", percent_added("Emit/JsonSmall", "Off/Small"));
  print("labels with sizes, added to a step of tiny operations",
        percent_added("Emit/LabelsTiny", "Off/Tiny"));
  print("  of which an empty observer of arguments costs", percent_added("EmptyObserver/Tiny", "Off/Tiny"));
  limits.AtMost("labels with sizes, to an empty observer, tiny operations",
                ns["Emit/LabelsTiny"] / ns["EmptyObserver/Tiny"], 1.25, "x ");
  return limits.all_hold();
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  // Before the first call of NVTX, which reads it.
  setenv("NVTX_INJECTION64_PATH", "core/nvtx/libnvtx_injection_for_benchmark.so", 0);
  at::set_num_threads(1);
  FastestRuns nanoseconds;
  benchmark::RunSpecifiedBenchmarks(&nanoseconds);
  return PrintLimits(nanoseconds) ? 0 : 1;
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) { return ott::Main(argc, argv); }
