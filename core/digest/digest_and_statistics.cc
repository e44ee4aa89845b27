#include "ott/core/digest/digest_and_statistics.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>
#include <vector>

#include "ott/core/base/status_macros.h"
#include "ott/core/digest/block_digest.h"
#include "ott/core/digest/chunk_sums.h"
#include "ott/core/digest/digest_arithmetic.h"
#include "ott/core/digest/statistics_on_device.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/tensor.h"

namespace ott {
namespace {

using internal::ChunkSums;
using internal::DigestKey;
using internal::kChunkElements;
using internal::kLargestToSum;
using internal::kSmallestToSquare;

// The parts from which the statistics of a tensor are made.
struct Totals {
  double squares = 0;
  double max_abs = 0;
  int64_t num_nan = 0;
  int64_t num_infinite = 0;
  double sums[TensorSketch::kNumSums] = {};
  int64_t num_chunks = 0;

  // Each sum of a chunk has a further sign, and is added to another one, so that columns of any length are
  // spread over all of them, too.
  template <typename T>
  void AddToSums(const T* of_chunk) {
    constexpr T kSigns[] = {1, -1};
    const uint64_t key = DigestKey(internal::kFirstChunkKey + num_chunks++);
    for (int i = 0; i < TensorSketch::kNumSums; ++i) {
      sums[(i + (key >> 32)) % TensorSketch::kNumSums] += kSigns[key >> i & 1] * of_chunk[i];
    }
  }
};

// Any number of elements, with doubles.
template <typename T>
void AddChunkExactly(const T* elements, int64_t count, Totals& totals) {
  const internal::ChunkPattern& pattern = internal::PatternOfChunk();
  double sums[TensorSketch::kNumSums] = {};
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(elements[i]);
    if (!(std::fabs(value) <= kLargestToSum)) {
      ++(std::isnan(value) ? totals.num_nan : totals.num_infinite);
      continue;
    }
    totals.squares += value * value;
    totals.max_abs = std::max(totals.max_abs, std::fabs(value));
    sums[pattern.sums[i]] += value * pattern.signs[i];
  }
  totals.AddToSums(sums);
}

// True if there is a SumChunk of them.
template <typename T>
constexpr bool kSummedQuickly =
    std::is_same_v<T, float> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <typename T>
void AddChunk(const T* elements, int64_t count, Totals& totals) {
  static internal::SumChunk* const sum_chunk = internal::SumChunksOfThisMachine<T>().front();
  const internal::ChunkPattern& pattern = internal::PatternOfChunk();
  ChunkSums result;
  if (count == kChunkElements) {
    sum_chunk(elements, pattern, result);
  } else {
    if (count < 64) return AddChunkExactly(elements, count, totals);
    T padded[kChunkElements] = {};
    std::copy(elements, elements + count, padded);
    sum_chunk(padded, pattern, result);
  }
  if (!std::isfinite(result.squares) || (result.max_abs < kSmallestToSquare && result.max_abs > 0)) {
    return AddChunkExactly(elements, count, totals);
  }
  totals.squares += result.squares;
  totals.max_abs = std::max<double>(totals.max_abs, result.max_abs);
  totals.AddToSums(result.sums);
}

template <typename T>
void AddElements(const T* elements, int64_t count, Totals& totals) {
  if constexpr (kSummedQuickly<T>) {
    AddChunk(elements, count, totals);
  } else if constexpr (sizeof(T) <= 2) {
    float floats[kChunkElements];
    for (int64_t i = 0; i < count; ++i) floats[i] = static_cast<float>(elements[i]);
    AddChunk(floats, count, totals);
  } else {
    AddChunkExactly(elements, count, totals);
  }
}

// The leaf of a block, and its elements to totals.
template <typename T>
Digest AddBlock(const char* data, int64_t count, Totals& totals) {
  internal::BlockDigest digest;
  for (int64_t begin = 0; begin < count; begin += kChunkElements) {
    const int64_t size = std::min(count - begin, kChunkElements);
    const char* const chunk = data + begin * static_cast<int64_t>(sizeof(T));
    digest.Add(chunk, size * static_cast<int64_t>(sizeof(T)));
    // The nearest cache holds the elements that the digest read.
    AddElements(reinterpret_cast<const T*>(chunk), size, totals);
  }
  return digest.Finish();
}

Digest AddBlockOf(DType dtype, const char* data, int64_t count, Totals& totals) {
  return VisitDType(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, std::complex<float>>) {
      return AddBlock<float>(data, 2 * count, totals);
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
      return AddBlock<double>(data, 2 * count, totals);
    } else if constexpr (std::is_same_v<T, bool>) {
      return AddBlock<uint8_t>(data, count, totals);
    } else {
      return AddBlock<T>(data, count, totals);
    }
  });
}

}  // namespace

absl::StatusOr<DigestAndStatistics> ComputeDigestAndStatistics(const TensorView& tensor) {
  if (HasStatisticsOnDevice(tensor)) {
    const auto started = StartStatisticsOnDevice(tensor);
    if (started.ok()) return (*started)->Get();
    // Its memory may be full, and the host's not.
  }
  OTT_ASSIGN_OR_RETURN(const Tensor host, ToHost(Tensor{tensor, nullptr}));
  const DType dtype = tensor.dtype();
  Totals totals;
  std::vector<Digest> leaves;
  internal::ForEachBlock(
      host.view, std::min<int64_t>(SizeOf(dtype), 8),
      [&](const char* block, int64_t count) { leaves.push_back(AddBlockOf(dtype, block, count, totals)); });
  DigestAndStatistics result;
  result.digest = DigestOfLeaves(dtype, tensor.shape(), leaves);
  SketchedStatistics& statistics = result.statistics;
  statistics.norm = std::sqrt(totals.squares);
  statistics.max_abs = totals.max_abs;
  statistics.num_nan = totals.num_nan;
  statistics.num_infinite = totals.num_infinite;
  for (int i = 0; i < TensorSketch::kNumSums; ++i) {
    statistics.sketch.sums[i] = static_cast<float>(totals.sums[i]);
  }
  return result;
}

}  // namespace ott
