// Comparing with all figures beside merely reading both tensors.

#include <cstdint>
#include <cstring>
#include <vector>

#include "benchmark/benchmark.h"
#include "ott/core/compare/tensor_comparison.h"

namespace ott {
namespace {

constexpr int64_t kBytes = 64 << 20;

// Finite numbers of either sign, whatever the type.
std::vector<uint16_t> Elements() {
  std::vector<uint16_t> elements(kBytes / 2);
  uint32_t random = 1;
  for (uint16_t& element : elements) {
    random = random * 1664525 + 1013904223;
    element = static_cast<uint16_t>(0x3800 | (random >> 16 & 0x83ff));
  }
  return elements;
}

void SetBytes(benchmark::State& state) { state.SetBytesProcessed(state.iterations() * 2 * kBytes); }

void BM_ReadBoth(benchmark::State& state) {
  const std::vector<uint16_t> a = Elements();
  const std::vector<uint16_t> b = a;
  for (auto _ : state) {
    uint64_t sums[8] = {};
    for (int64_t i = 0; i < kBytes / 2; i += 32) {
      uint64_t x[8];
      uint64_t y[8];
      std::memcpy(x, &a[i], 64);
      std::memcpy(y, &b[i], 64);
      for (int j = 0; j < 8; ++j) sums[j] += x[j] ^ y[j];
    }
    benchmark::DoNotOptimize(sums);
  }
  SetBytes(state);
}

// every: one of so many elements is another number; 0: none is.
void Compare(benchmark::State& state, DType dtype, int every, int num_threads) {
  std::vector<uint16_t> a = Elements();
  std::vector<uint16_t> b = a;
  const int64_t size = SizeOf(dtype);
  for (int64_t i = 0; every > 0 && i < kBytes; i += size * every) reinterpret_cast<char*>(b.data())[i] ^= 1;
  const Dims shape = {kBytes / size};
  const TensorView reference(a.data(), dtype, shape);
  const TensorView current(b.data(), dtype, shape);
  TensorCompareOptions options;
  options.tolerance.atol = options.tolerance.rtol = 0.1;
  options.num_threads = num_threads;
  for (auto _ : state) benchmark::DoNotOptimize(CompareTensors(reference, current, options));
  SetBytes(state);
}

// By the time of all threads: per core.
BENCHMARK(BM_ReadBoth)->MeasureProcessCPUTime();
#define OTT_BENCHMARK_COMPARE(name, dtype)                                                  \
  BENCHMARK_CAPTURE(Compare, name##_equal, dtype, 0, 1)->MeasureProcessCPUTime();           \
  BENCHMARK_CAPTURE(Compare, name##_equal_2_threads, dtype, 0, 2)->MeasureProcessCPUTime(); \
  BENCHMARK_CAPTURE(Compare, name##_one_in_1024, dtype, 1024, 1)->MeasureProcessCPUTime();  \
  BENCHMARK_CAPTURE(Compare, name##_all_differ, dtype, 1, 1)->MeasureProcessCPUTime()
OTT_BENCHMARK_COMPARE(f32, DType::kFloat32);
OTT_BENCHMARK_COMPARE(f64, DType::kFloat64);
OTT_BENCHMARK_COMPARE(bf16, DType::kBFloat16);
OTT_BENCHMARK_COMPARE(f16, DType::kFloat16);
OTT_BENCHMARK_COMPARE(i64, DType::kInt64);
OTT_BENCHMARK_COMPARE(u8, DType::kUInt8);

}  // namespace
}  // namespace ott
