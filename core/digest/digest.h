// 128-bit digests of tensors: equality for 16 bytes, and which blocks differ without moving the tensor.
//
// For accidents, not for adversaries: any difference, be it a permutation, two flips of the same bit or a
// changed element, goes unseen with a chance of about 2^-128 (2^-64 for either half alone).
//
// The construction, so that a device can compute it too: a block is padded with zeros to a multiple of 256
// bytes and read as little-endian 64-bit words. Word i goes to lane i mod 32. A lane is two 64-bit states a
// and b, and takes the words in order:
//   x = a XOR w    a = lo32(x) * kMultipliers[0] + hi32(x) * kMultipliers[1]
//   y = b + w      b = lo32(y) * kMultipliers[2] + hi32(y) * kMultipliers[3]
// (modulo 2^64). Lanes do not depend on each other, so a vector register holds several, and a GPU warp
// all 32. The leaf's halves are the sums over the lanes of Mix(a) and Mix(b), each keyed by the lane, so in
// any order; the block's length is mixed into both. The root chains dtype and shape, and absorbs the sums
// over the leaves of Mix of their halves, each keyed by the leaf's number (see digest_arithmetic.h).

#ifndef OTT_CORE_DIGEST_DIGEST_H_
#define OTT_CORE_DIGEST_DIGEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

// Returns the inverse of ToString. INVALID_ARGUMENT for anything else.
absl::StatusOr<Digest> ParseDigest(std::string_view text);

// Bytes of a tensor, in row-major order without gaps, that one leaf covers. The last leaf may be shorter.
inline constexpr int64_t kDigestBlockBytes = 64 * 1024;

struct TensorDigest {
  // Over dtype, shape and all leaves.
  Digest root;
  // One for each block of kDigestBlockBytes; none for a tensor without elements.
  std::vector<Digest> leaves;
};

// Computes a position-dependent digest over dtype, shape and raw bytes; strides and device do not matter. A
// tensor without gaps in device memory stays there: 16 bytes of each block come to the host. Errors: as
// CloneToHost.
absl::StatusOr<TensorDigest> ComputeDigest(const TensorView& tensor);

// Returns the root of bytes, which are a tensor of dtype uint8 with one dimension. Errors: as
// ComputeDigest().
absl::StatusOr<Digest> DigestOfBytes(std::string_view bytes);

// Returns the leaf of one block of at most kDigestBlockBytes.
Digest DigestOfBlock(absl::Span<const char> block);

// Returns the root of a tensor with these leaves.
Digest DigestOfLeaves(DType dtype, absl::Span<const int64_t> shape, absl::Span<const Digest> leaves);

// Returns the root before it absorbs leaves.
Digest DigestOfHeader(DType dtype, absl::Span<const int64_t> shape);

}  // namespace ott

#endif  // OTT_CORE_DIGEST_DIGEST_H_
