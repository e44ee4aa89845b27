#include "ott/core/digest/chunk_sums.h"

#include <algorithm>
#include <cmath>

#include "ott/core/tensor/element.h"

namespace ott::internal {

template <typename T>
void SumChunkPortable(const void* elements, const float* signs, ChunkSums& result) {
  result = {};
  for (int64_t i = 0; i < kChunkElements; ++i) {
    const auto x = static_cast<float>(static_cast<const T*>(elements)[i]);
    result.squares += x * x;
    result.max_abs = std::max(result.max_abs, std::fabs(x));
    result.sums[SumOf(i)] += x * signs[i];
  }
}

template SumChunk SumChunkPortable<float>;
template SumChunk SumChunkPortable<Float16>;
template SumChunk SumChunkPortable<BFloat16>;

}  // namespace ott::internal
