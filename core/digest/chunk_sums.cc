#include "ott/core/digest/chunk_sums.h"

#include <algorithm>
#include <cmath>

#include "ott/core/digest/digest_arithmetic.h"
#include "ott/core/tensor/element.h"

namespace ott::internal {

ChunkPattern::ChunkPattern() {
  for (int64_t i = 0; i < kChunkElements; ++i) {
    signs[i] = (DigestKey(kFirstSignKey + i / 64) >> (i % 64) & 1) != 0 ? -1.0f : 1.0f;
    parted_signs[i / 32 * 32 + i % 2 * 16 + i % 32 / 2] = signs[i];
    sums[i] = static_cast<uint8_t>(SumOf(i));
  }
}

const ChunkPattern& PatternOfChunk() {
  static const ChunkPattern pattern;
  return pattern;
}

template <typename T>
void SumChunkPortable(const void* elements, const ChunkPattern& pattern, ChunkSums& result) {
  result = {};
  for (int64_t i = 0; i < kChunkElements; ++i) {
    const auto x = static_cast<float>(static_cast<const T*>(elements)[i]);
    result.squares += x * x;
    result.max_abs = std::max(result.max_abs, std::fabs(x));
    result.sums[pattern.sums[i]] += x * pattern.signs[i];
  }
}

template SumChunk SumChunkPortable<float>;
template SumChunk SumChunkPortable<Float16>;
template SumChunk SumChunkPortable<BFloat16>;

}  // namespace ott::internal
