// The digest beside the fastest thing that reads all bytes, and beside XXH3-128, its peer; and with
// statistics.

#include <vector>

#include "benchmark/benchmark.h"
#include "ott/core/digest/digest.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "xxhash.h"

namespace ott {
namespace {

std::vector<uint64_t> Words(int64_t num_bytes) {
  std::vector<uint64_t> words(num_bytes / 8);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i * 0x9e3779b97f4a7c15;
  return words;
}

void SetBytes(benchmark::State& state) { state.SetBytesProcessed(state.iterations() * state.range(0)); }

void BM_Read(benchmark::State& state) {
  const std::vector<uint64_t> words = Words(state.range(0));
  const size_t size = words.size();
  for (auto _ : state) {
    uint64_t sums[8] = {};
    for (size_t i = 0; i < size; i += 8) {
      for (int j = 0; j < 8; ++j) sums[j] += words[i + j];
    }
    benchmark::DoNotOptimize(sums);
  }
  SetBytes(state);
}

void BM_Digest(benchmark::State& state) {
  const std::vector<uint64_t> words = Words(state.range(0));
  const TensorView view(words.data(), {static_cast<int64_t>(words.size())});
  for (auto _ : state) benchmark::DoNotOptimize(ComputeDigest(view)->root);
  SetBytes(state);
}

void BM_Xxh3(benchmark::State& state) {
  const std::vector<uint64_t> words = Words(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(XXH3_128bits(words.data(), state.range(0)));
  SetBytes(state);
}

// Measures what a log of operations does with float32 and bfloat16; compare with BM_Digest.
template <DType kDType>
void BM_DigestAndStatistics(benchmark::State& state) {
  // Numbers of either dtype, near 1.
  const std::vector<uint16_t> halves(state.range(0) / 2, 0x3f83);
  const TensorView view(halves.data(), kDType, {state.range(0) / SizeOf(kDType)});
  for (auto _ : state) benchmark::DoNotOptimize(ComputeDigestAndStatistics(view)->digest);
  SetBytes(state);
}

// In the cache, and from memory.
BENCHMARK(BM_Read)->Arg(64 << 10)->Arg(256 << 20);
BENCHMARK(BM_Digest)->Arg(64 << 10)->Arg(256 << 20);
BENCHMARK_TEMPLATE(BM_DigestAndStatistics, DType::kFloat32)->Arg(64 << 10)->Arg(256 << 20);
BENCHMARK_TEMPLATE(BM_DigestAndStatistics, DType::kBFloat16)->Arg(64 << 10)->Arg(256 << 20);
BENCHMARK(BM_Xxh3)->Arg(64 << 10)->Arg(256 << 20);

}  // namespace
}  // namespace ott
