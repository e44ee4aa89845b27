#include "ott/core/digest/chunk_sums.h"
#include "ott/core/tensor/element.h"

namespace ott::internal {

template <typename T>
SumChunk* FastestSumChunk() {
  return SumChunkPortable<T>;
}

template SumChunk* FastestSumChunk<float>();
template SumChunk* FastestSumChunk<Float16>();
template SumChunk* FastestSumChunk<BFloat16>();

}  // namespace ott::internal
