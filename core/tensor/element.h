// The C++ types of tensor elements.
//
//   VisitDType(view.dtype(), [&](auto element) {
//     using T = decltype(element);
//     Print(static_cast<const T*>(view.data()), view.num_elements());
//   });

#ifndef OTT_CORE_TENSOR_ELEMENT_H_
#define OTT_CORE_TENSOR_ELEMENT_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ott/core/tensor/dtype.h"

namespace ott {

// Floating-point types that C++17 lacks, as their bits. Arithmetic is done on the float each converts to,
// exactly.

struct Float16 {
  uint16_t bits;
  operator float() const;
};

struct BFloat16 {
  uint16_t bits;
  operator float() const;
};

struct Float8E4M3 {
  uint8_t bits;
  operator float() const;
};

struct Float8E5M2 {
  uint8_t bits;
  operator float() const;
};

// Returns the DType whose elements are of type T.
template <typename T>
constexpr DType DTypeOf();

// True if T is a std::complex.
template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// Returns the nearest T, ties to even mantissas, for a floating-point T. What is too large becomes infinite,
// or NaN where T has no infinities.
template <typename T>
T FromDouble(double value);

// Calls f with a value-initialised element of dtype's C++ type, and returns what it returns.
template <typename F>
decltype(auto) VisitDType(DType dtype, F&& f);

// Implementation.

namespace internal {

inline float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Converts IEEE 754 binary16 to binary32: the mantissa and exponent in their new places, times the ratio of
// the scales (2^112), which also makes subnormals normal.
inline float FloatFromHalf(uint32_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const float scaled = FloatFromBits(magnitude << 13) * 0x1p112f;
  uint32_t bits;
  std::memcpy(&bits, &scaled, sizeof(bits));
  const uint32_t not_finite = magnitude >= 0x7c00u ? 0x7f800000u : 0;
  return FloatFromBits(bits | not_finite | (half & 0x8000u) << 16);
}

// Returns the bits of the nearest number of a format of at most 32 bits.
inline uint32_t RoundToBits(double value, const DTypeInfo& format) {
  const int num_exponent_bits = format.exponent_bits;
  const int num_mantissa_bits = format.mantissa_bits;
  const int bias = (1 << (num_exponent_bits - 1)) - 1;
  const uint32_t sign = std::signbit(value) ? 1u << (num_exponent_bits + num_mantissa_bits) : 0;
  const uint32_t infinity = ((1u << num_exponent_bits) - 1) << num_mantissa_bits;
  const uint32_t nan = format.has_infinities ? infinity | 1u << (num_mantissa_bits - 1)
                                             : infinity | ((1u << num_mantissa_bits) - 1);
  const uint32_t overflow = format.has_infinities ? infinity : nan;
  if (std::isnan(value)) return sign | nan;
  if (std::isinf(value)) return sign | overflow;
  int exponent = 0;
  std::frexp(value, &exponent);
  // Zero and subnormals have the exponent of the smallest normal number.
  const int biased = value == 0 ? 1 : std::max(exponent - 1 + bias, 1);
  if (biased > 1 << num_exponent_bits) return sign | overflow;
  const double mantissa = std::nearbyint(std::ldexp(std::fabs(value), num_mantissa_bits + bias - biased));
  // The mantissa's leading bit, or a carry out of it, raises the exponent.
  const uint32_t bits =
      (static_cast<uint32_t>(biased - 1) << num_mantissa_bits) + static_cast<uint32_t>(mantissa);
  return sign | std::min(bits, overflow);
}

}  // namespace internal

inline Float16::operator float() const { return internal::FloatFromHalf(bits); }

inline BFloat16::operator float() const { return internal::FloatFromBits(uint32_t{bits} << 16); }

// One sign, four exponent bits (bias 7), three mantissa bits: a binary16 (bias 15) shifted by one exponent
// bit, 2^8 too small.
inline Float8E4M3::operator float() const {
  const uint32_t sign = (bits & 0x80u) << 8;
  if ((bits & 0x7fu) == 0x7fu) return internal::FloatFromHalf(sign | 0x7e00u);
  return internal::FloatFromHalf(sign | (bits & 0x7fu) << 7) * 256.0f;
}

// Returns the upper half of a binary16.
inline Float8E5M2::operator float() const { return internal::FloatFromHalf(uint32_t{bits} << 8); }

template <typename T>
constexpr DType DTypeOf() {
#define OTT_DTYPE_OF(dtype, element, ...)     \
  if constexpr (std::is_same_v<T, element>) { \
    return DType::dtype;                      \
  } else
  OTT_DTYPES(OTT_DTYPE_OF) {
    // An integer by another name, such as long long.
    static_assert(std::is_integral_v<T>, "no DType has elements of this type");
    constexpr bool kSigned = std::is_signed_v<T>;
    return sizeof(T) == 1   ? kSigned ? DType::kInt8 : DType::kUInt8
           : sizeof(T) == 2 ? kSigned ? DType::kInt16 : DType::kUInt16
           : sizeof(T) == 4 ? kSigned ? DType::kInt32 : DType::kUInt32
           : kSigned        ? DType::kInt64
                            : DType::kUInt64;
  }
#undef OTT_DTYPE_OF
}

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return {static_cast<decltype(T::bits)>(internal::RoundToBits(value, InfoOf(DTypeOf<T>())))};
  }
}

template <typename F>
decltype(auto) VisitDType(DType dtype, F&& f) {
  switch (dtype) {
#define OTT_VISIT(dtype, element, name, size, ...) \
  case DType::dtype:                               \
    static_assert(sizeof(element) == (size));      \
    return f(element{});
    OTT_DTYPES(OTT_VISIT)
#undef OTT_VISIT
  }
  __builtin_unreachable();
}

}  // namespace ott

#endif  // OTT_CORE_TENSOR_ELEMENT_H_
