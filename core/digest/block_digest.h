// The blocks of a tensor, and the digest of one, fed piece by piece (digest.h gives the construction).

#ifndef OTT_CORE_DIGEST_BLOCK_DIGEST_H_
#define OTT_CORE_DIGEST_BLOCK_DIGEST_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "ott/core/digest/digest.h"
#include "ott/core/digest/digest_lanes.h"
#include "ott/core/tensor/strided_copy.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott::internal {

class BlockDigest {
 public:
  BlockDigest();

  // REQUIRES: only the last piece is no multiple of kDigestStripeBytes; at most kDigestBlockBytes in all
  void Add(const char* data, int64_t num_bytes);
  Digest Finish() const;

 private:
  DigestLanes lanes_;
  int64_t num_bytes_ = 0;
};

// Calls f(data, num_elements) for each block of a tensor in host memory, kDigestBlockBytes of its elements in
// row-major order. Those that have gaps, or are not aligned to so many bytes, are copied.
template <typename F>
void ForEachBlock(const TensorView& tensor, int64_t alignment, const F& f) {
  const int64_t element_bytes = SizeOf(tensor.dtype());
  const int64_t block_elements = kDigestBlockBytes / element_bytes;
  const bool in_place = tensor.is_contiguous() && reinterpret_cast<uintptr_t>(tensor.data()) % alignment == 0;
  const std::unique_ptr<char[]> copy(in_place ? nullptr : new char[kDigestBlockBytes]);
  for (int64_t begin = 0; begin < tensor.num_elements(); begin += block_elements) {
    const int64_t end = std::min(begin + block_elements, tensor.num_elements());
    if (!in_place) CopyElements(tensor, begin, end, copy.get());
    f(in_place ? static_cast<const char*>(tensor.data()) + begin * element_bytes : copy.get(), end - begin);
  }
}

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_BLOCK_DIGEST_H_
