#include "ott/core/digest/chunk_sums.h"
#include "ott/core/tensor/element.h"

namespace ott::internal {

template <typename T>
std::vector<SumChunk*> SumChunksOfThisMachine() {
  return {SumChunkPortable<T>};
}

template std::vector<SumChunk*> SumChunksOfThisMachine<float>();
template std::vector<SumChunk*> SumChunksOfThisMachine<Float16>();
template std::vector<SumChunk*> SumChunksOfThisMachine<BFloat16>();

}  // namespace ott::internal
