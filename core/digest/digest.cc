#include "ott/core/digest/digest.h"

#include <charconv>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/digest/block_digest.h"
#include "ott/core/digest/digest_arithmetic.h"
#include "ott/core/digest/digest_on_device.h"
#include "ott/core/tensor/tensor.h"

namespace ott {

std::string Digest::ToString() const {
  return absl::StrCat(absl::Hex(high, absl::kZeroPad16), absl::Hex(low, absl::kZeroPad16));
}

absl::StatusOr<Digest> ParseDigest(std::string_view text) {
  const auto parse_half = [](std::string_view half, uint64_t& value) {
    const auto [end, error] = std::from_chars(half.data(), half.data() + half.size(), value, 16);
    return error == std::errc() && end == half.data() + half.size();
  };
  Digest digest;
  if (text.size() != 32 || !parse_half(text.substr(0, 16), digest.high) ||
      !parse_half(text.substr(16), digest.low)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' is not a digest of 32 hexadecimal digits"));
  }
  return digest;
}

absl::StatusOr<Digest> DigestOfBytes(std::string_view bytes) {
  const TensorView view(bytes.data(), DType::kUInt8, {static_cast<int64_t>(bytes.size())});
  OTT_ASSIGN_OR_RETURN(const TensorDigest digest, ComputeDigest(view));
  return digest.root;
}

Digest DigestOfBlock(absl::Span<const char> block) {
  OTT_CHECK(static_cast<int64_t>(block.size()) <= kDigestBlockBytes)
      << "a block of " << block.size() << " bytes";
  internal::BlockDigest digest;
  digest.Add(block.data(), static_cast<int64_t>(block.size()));
  return digest.Finish();
}

Digest DigestOfHeader(DType dtype, absl::Span<const int64_t> shape) {
  internal::DigestLane root{internal::DigestKey(1), internal::DigestKey(2)};
  const auto absorb = [&root](uint64_t word) { root = internal::AbsorbIntoRoot(root, {word, word}); };
  // Names do not change; the enumeration's order might.
  for (const char c : Name(dtype)) absorb(static_cast<unsigned char>(c));
  absorb(shape.size());
  for (const int64_t dimension : shape) absorb(dimension);
  return {root.a, root.b};
}

Digest DigestOfLeaves(DType dtype, absl::Span<const int64_t> shape, absl::Span<const Digest> leaves) {
  internal::DigestLane sums{};
  for (size_t i = 0; i < leaves.size(); ++i) {
    const internal::DigestLane part = internal::DigestPart({leaves[i].low, leaves[i].high}, i);
    sums.a += part.a;
    sums.b += part.b;
  }
  const Digest header = DigestOfHeader(dtype, shape);
  const internal::DigestLane root = internal::AbsorbIntoRoot({header.low, header.high}, sums);
  return {root.a, root.b};
}

absl::StatusOr<TensorDigest> ComputeDigest(const TensorView& tensor) {
  if (tensor.device().kind == Device::Kind::kCuda && tensor.is_contiguous()) {
    TensorDigest digest;
    if (tensor.num_elements() > 0) {
      OTT_ASSIGN_OR_RETURN(const auto on_device, StartDigestOnDevice(tensor));
      OTT_ASSIGN_OR_RETURN(digest.leaves, on_device->Leaves());
    }
    digest.root = DigestOfLeaves(tensor.dtype(), tensor.shape(), digest.leaves);
    return digest;
  }
  OTT_ASSIGN_OR_RETURN(const Tensor host, ToHost(Tensor{tensor, nullptr}));
  TensorDigest digest;
  internal::ForEachBlock(host.view, /*alignment=*/1, [&](const char* block, int64_t count) {
    digest.leaves.push_back(DigestOfBlock({block, static_cast<size_t>(count * SizeOf(tensor.dtype()))}));
  });
  digest.root = DigestOfLeaves(tensor.dtype(), tensor.shape(), digest.leaves);
  return digest;
}

}  // namespace ott
