// The numbers that elements are, in kernels. For CUDA sources only.

#ifndef OTT_CORE_TENSOR_DEVICE_NUMBER_H_
#define OTT_CORE_TENSOR_DEVICE_NUMBER_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ott/core/tensor/device_element.h"

namespace ott::internal {

__host__ __device__ constexpr int SizeOfElement(DeviceElement element) {
  switch (element) {
    case DeviceElement::kFloat64:
    case DeviceElement::kInt64:
    case DeviceElement::kUInt64:
      return 8;
    case DeviceElement::kFloat32:
    case DeviceElement::kInt32:
    case DeviceElement::kUInt32:
      return 4;
    case DeviceElement::kFloat16:
    case DeviceElement::kBFloat16:
    case DeviceElement::kInt16:
    case DeviceElement::kUInt16:
      return 2;
    default:
      return 1;
  }
}

// The type that an element is read as. kElement, here and below: a DeviceElement.
template <int kElement>
using ElementBits = std::conditional_t<
    SizeOfElement(static_cast<DeviceElement>(kElement)) == 8, uint64_t,
    std::conditional_t<
        SizeOfElement(static_cast<DeviceElement>(kElement)) == 4, uint32_t,
        std::conditional_t<SizeOfElement(static_cast<DeviceElement>(kElement)) == 2, uint16_t, uint8_t>>>;

template <typename To, typename From>
__device__ To CastBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// Converts like FloatFromHalf() of element.h.
__device__ inline float FloatOfHalf(uint32_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const auto scaled = CastBits<uint32_t>(CastBits<float>(magnitude << 13) * 0x1p112f);
  const uint32_t not_finite = magnitude >= 0x7c00u ? 0x7f800000u : 0;
  return CastBits<float>(scaled | not_finite | (half & 0x8000u) << 16);
}

// Returns a float where that is exact, else a double.
template <int kElement>
__device__ auto NumberOf(ElementBits<kElement> bits) {
  constexpr DeviceElement kKind = static_cast<DeviceElement>(kElement);
  if constexpr (kKind == DeviceElement::kFloat64) {
    return CastBits<double>(bits);
  } else if constexpr (kKind == DeviceElement::kFloat32) {
    return CastBits<float>(bits);
  } else if constexpr (kKind == DeviceElement::kBFloat16) {
    return CastBits<float>(static_cast<uint32_t>(bits) << 16);
  } else if constexpr (kKind == DeviceElement::kFloat16) {
    return FloatOfHalf(bits);
  } else if constexpr (kKind == DeviceElement::kFloat8E5M2) {
    return FloatOfHalf(static_cast<uint32_t>(bits) << 8);
  } else if constexpr (kKind == DeviceElement::kFloat8E4M3) {
    const uint32_t magnitude = bits & 0x7fu;
    const uint32_t half = magnitude == 0x7fu ? 0x7e00u : magnitude << 7;
    return FloatOfHalf(half | (bits & 0x80u) << 8) * 256.0f;
  } else {
    using Number = std::conditional_t<sizeof(bits) <= 2, float, double>;
    if constexpr (kKind >= DeviceElement::kUInt8) {
      return static_cast<Number>(bits);
    } else {
      return static_cast<Number>(CastBits<std::make_signed_t<ElementBits<kElement>>>(bits));
    }
  }
}

}  // namespace ott::internal

#endif  // OTT_CORE_TENSOR_DEVICE_NUMBER_H_
