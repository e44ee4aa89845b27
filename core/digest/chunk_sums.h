// The inner loop of statistics, once for any machine, and for AVX2 and AVX-512.

#ifndef OTT_CORE_DIGEST_CHUNK_SUMS_H_
#define OTT_CORE_DIGEST_CHUNK_SUMS_H_

#include <cstdint>

namespace ott::internal {

// Elements that are summed as floats, before the sums are added to those of the tensor as doubles.
inline constexpr int64_t kChunkElements = 2048;

struct ChunkSums {
  // Of all elements. Not finite where an element is not, and where a square overflows.
  float squares;
  // Anything where squares is not finite.
  float max_abs;
  // Sum i of the elements i modulo 16, each times its sign.
  alignas(64) float sums[16];
};

// elements: kChunkElements of them. signs (1 and -1): as many, aligned to 64 bytes.
using SumChunk = void(const void* elements, const float* signs, ChunkSums& result);

// Of float, Float16 or BFloat16.
template <typename T>
SumChunk SumChunkPortable;

// The fastest one this machine can run.
template <typename T>
SumChunk* FastestSumChunk();

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_CHUNK_SUMS_H_
