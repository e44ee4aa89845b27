#include "ott/core/op_log/perturbation.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ott/core/base/glob.h"
#include "ott/core/digest/digest_arithmetic.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

using internal::DigestMix;
using internal::kDigestGolden;

constexpr int kMaxUlps = 1 << 20;

uint64_t HashOf(uint64_t seed, std::string_view path) {
  uint64_t hash = DigestMix(seed + kDigestGolden);
  for (const char c : path) hash = DigestMix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

// Bits is an unsigned integer of the element's size, largest_finite the bits of its largest finite number.
template <typename Bits>
void MoveBits(void* data, int64_t count, Bits largest_finite, uint64_t max_ulps, uint64_t hash) {
  const auto ulps = static_cast<Bits>(std::min<uint64_t>(max_ulps, largest_finite));
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  auto* const bytes = static_cast<char*>(data);
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * static_cast<int64_t>(sizeof(Bits)), sizeof(bits));
    auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
    if (magnitude == 0 || magnitude > largest_finite) continue;
    const bool up = (DigestMix(hash + static_cast<uint64_t>(i) * kDigestGolden) & 1) != 0;
    if (up) {
      magnitude = largest_finite - magnitude < ulps ? largest_finite : static_cast<Bits>(magnitude + ulps);
    } else {
      magnitude = magnitude <= ulps ? Bits{1} : static_cast<Bits>(magnitude - ulps);
    }
    bits = static_cast<Bits>((bits & kSign) | magnitude);
    std::memcpy(bytes + i * static_cast<int64_t>(sizeof(Bits)), &bits, sizeof(bits));
  }
}

}  // namespace

ProcessWide<Perturbation> Perturbation::process_wide_("ott.Perturbation");
const ProcessWide<Perturbation>::JoinAtLoad Perturbation::join_at_load_(Perturbation::process_wide_);

absl::Status Perturbation::Enable(const Options& options) {
  if (options.ulps < 1 || options.ulps > kMaxUlps) {
    return absl::InvalidArgumentError(
        absl::StrCat("perturb: ", options.ulps, " ulps is not in [1, ", kMaxUlps, "]"));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (enabled_) return absl::FailedPreconditionError("perturb: enabled already");
  enabled_ = true;
  options_ = options;
  moved_.clear();
  if (this == &process_wide_.Get()) process_wide_.SetEnabled(true);
  return absl::OkStatus();
}

void Perturbation::Disable() {
  const std::lock_guard<std::mutex> lock(mutex_);
  enabled_ = false;
  if (this == &process_wide_.Get()) process_wide_.SetEnabled(false);
}

std::set<std::string> Perturbation::moved() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return moved_;
}

absl::Status Perturbation::OfferView(std::string_view path, const TensorView& view, void* data) {
  Perturbation* const enabled = process_wide_.IfEnabled();
  return enabled == nullptr ? absl::OkStatus() : enabled->Move(path, view, data);
}

absl::Status Perturbation::Move(std::string_view path, const TensorView& view, void* data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!options_.paths.empty() && !MatchesAnyGlob(path, options_.paths)) return absl::OkStatus();
  if (view.device().kind != Device::Kind::kHost) {
    return absl::UnimplementedError(absl::StrCat("perturb: ", std::string(path),
                                                 " is in device memory; offer it before it is copied there"));
  }
  if (!view.is_contiguous()) {
    return absl::InvalidArgumentError(absl::StrCat("perturb: ", std::string(path), " is not contiguous"));
  }
  const uint64_t hash = HashOf(options_.seed, path);
  const int64_t count = view.num_elements();
  const auto ulps = static_cast<uint64_t>(options_.ulps);
  const DTypeInfo& dtype = InfoOf(view.dtype());
  if (dtype.mantissa_bits == 0) return absl::OkStatus();
  // Without infinities the largest number is the one before NaN, of which all bits are set.
  const uint64_t bits_of_magnitude = (uint64_t{1} << (dtype.exponent_bits + dtype.mantissa_bits)) - 1;
  const uint64_t largest =
      dtype.has_infinities ? bits_of_magnitude - (uint64_t{1} << dtype.mantissa_bits) : bits_of_magnitude - 1;
  const int64_t num_parts = IsComplex(dtype.dtype) ? 2 : 1;
  switch (dtype.size / num_parts) {
    case 8:
      MoveBits<uint64_t>(data, num_parts * count, largest, ulps, hash);
      break;
    case 4:
      MoveBits<uint32_t>(data, num_parts * count, static_cast<uint32_t>(largest), ulps, hash);
      break;
    case 2:
      MoveBits<uint16_t>(data, num_parts * count, static_cast<uint16_t>(largest), ulps, hash);
      break;
    default:
      MoveBits<uint8_t>(data, num_parts * count, static_cast<uint8_t>(largest), ulps, hash);
  }
  moved_.emplace(path);
  return absl::OkStatus();
}

}  // namespace ott
