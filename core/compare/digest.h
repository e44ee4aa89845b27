// 128-bit digests of tensors: equality for 16 bytes, and which blocks differ without moving the tensor.

#ifndef OTT_CORE_COMPARE_DIGEST_H_
#define OTT_CORE_COMPARE_DIGEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;

  std::string ToString() const;  // 32 hexadecimal digits, high first

  friend bool operator==(const Digest& a, const Digest& b) { return a.low == b.low && a.high == b.high; }
  friend bool operator!=(const Digest& a, const Digest& b) { return !(a == b); }
  friend bool operator<(const Digest& a, const Digest& b) {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

// Bytes of a tensor, in row-major order without gaps, that one leaf covers. The last leaf may be shorter.
inline constexpr int64_t kDigestBlockBytes = 64 * 1024;

struct TensorDigest {
  // Over dtype, shape and all leaves.
  Digest root;
  // One for each block of kDigestBlockBytes; none for a tensor without elements.
  std::vector<Digest> leaves;
};

// Position-dependent, over dtype, shape and raw bytes; strides and device do not matter.
absl::StatusOr<TensorDigest> ComputeDigest(const TensorView& tensor);

}  // namespace ott

#endif  // OTT_CORE_COMPARE_DIGEST_H_
