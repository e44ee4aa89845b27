// Holds what comparison_kernel.cc and comparison_kernel_avx2.cc compile, each for its own instructions.
// Everything is in an unnamed namespace, so that the linker cannot mix them up.

#ifndef OTT_CORE_COMPARE_COMPARISON_KERNEL_BODY_H_
#define OTT_CORE_COMPARE_COMPARISON_KERNEL_BODY_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ott/core/compare/comparison_kernel.h"

namespace ott::internal {
namespace {

// Elements become doubles in pieces of this many, by loops that the compiler vectorises by itself; the
// figures are then taken from the doubles with vectors of a register's size, since sums and maxima are not
// reordered by the compiler.
constexpr int64_t kPiece = 256;
static_assert(kPiece % kKernelLanes == 0);

typedef double Doubles __attribute__((vector_size(kKernelLanes * 8)));
typedef int64_t Masks __attribute__((vector_size(kKernelLanes * 8)));  // -1 is true

#define OTT_INLINE inline __attribute__((always_inline))

template <typename T>
OTT_INLINE double DoubleOf(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return FloatFromBits(uint32_t{value.bits} << 16);
  } else if constexpr (std::is_same_v<T, Float16>) {
    return FloatFromHalf(value.bits);
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    return FloatFromHalf(uint32_t{value.bits} << 8);
  } else {
    static_assert(std::is_same_v<T, Float8E4M3>);
    const uint32_t magnitude = value.bits & 0x7fu;
    const uint32_t nan = magnitude == 0x7fu ? 0x7e00u : 0;
    return FloatFromHalf(magnitude << 7 | nan | (value.bits & 0x80u) << 8) * 256.0f;
  }
}

template <typename T>
OTT_INLINE void LoadDoubles(const T* elements, int64_t count, double* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = DoubleOf(elements[i]);
}

// |current - reference|, of 64-bit integers before they are rounded to doubles.
template <typename T>
OTT_INLINE void LoadErrors(const T* reference, const T* current, const double* r, const double* c,
                           int64_t count, double* errors) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      const uint64_t x = static_cast<uint64_t>(reference[i]);
      const uint64_t y = static_cast<uint64_t>(current[i]);
      errors[i] = static_cast<double>(reference[i] > current[i] ? x - y : y - x);
    } else {
      errors[i] = __builtin_fabs(c[i] - r[i]);
    }
  }
}

// Neighbouring floating-point numbers are one apart, -0.0 and 0.0 nothing.
template <typename T>
OTT_INLINE uint64_t MaxUlpDistance(const T* reference, const T* current, int64_t count) {
  using Bits = BitsOf<T>;
  // Wide enough for the distance between the extremes; that of doubles is unsigned.
  using Wide =
      std::conditional_t<sizeof(T) == 8, int64_t, std::conditional_t<sizeof(T) == 4, int64_t, int32_t>>;
  using Distance = std::make_unsigned_t<Wide>;
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  Distance largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits a;
    Bits b;
    std::memcpy(&a, reference + i, sizeof(a));
    std::memcpy(&b, current + i, sizeof(b));
    const Wide x = a > kMagnitude ? -static_cast<Wide>(a & kMagnitude) : static_cast<Wide>(a);
    const Wide y = b > kMagnitude ? -static_cast<Wide>(b & kMagnitude) : static_cast<Wide>(b);
    const Distance distance = x > y ? Distance(x) - Distance(y) : Distance(y) - Distance(x);
    largest = distance > largest ? distance : largest;
  }
  return largest;
}

template <typename T>
OTT_INLINE int64_t CountBitsDiffer(const T* reference, const T* current, int64_t count) {
  using Bits = BitsOf<T>;
  int64_t differ = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits a;
    Bits b;
    std::memcpy(&a, reference + i, sizeof(a));
    std::memcpy(&b, current + i, sizeof(b));
    differ += a != b;
  }
  return differ;
}

OTT_INLINE void Load(const double* from, Doubles& to) { std::memcpy(&to, from, sizeof(to)); }

OTT_INLINE void Maximize(const Doubles& values, Doubles& maxima) {
  maxima = values > maxima ? values : maxima;
}

// Sums and maxima of a block, lane by lane.
struct Accumulators {
  Doubles max_abs = {};
  Doubles max_rel = {};
  Doubles sum_abs = {};
  Doubles sum_squares = {};
  Doubles dot = {};
  Doubles reference_norm = {};
  Doubles current_norm = {};
  Masks finite = ~Masks{};
  Masks exceeds = {};
  Masks out_of_tolerance = {};
};

OTT_INLINE void Accumulate(const double* references, const double* currents, const double* errors,
                           int64_t count, const KernelLimits& limits, Accumulators& sums) {
  const Doubles zero = {};
  for (int64_t i = 0; i < count; i += kKernelLanes) {
    Doubles r;
    Doubles c;
    Doubles error;
    Load(references + i, r);
    Load(currents + i, c);
    Load(errors + i, error);
    const Doubles magnitude = r < zero ? -r : r;
    sums.finite &= error <= std::numeric_limits<double>::max();
    Maximize(error, sums.max_abs);
    Maximize(error == zero ? zero : error / magnitude, sums.max_rel);
    sums.sum_abs += error;
    sums.sum_squares += error * error;
    sums.dot += r * c;
    sums.reference_norm += r * r;
    sums.current_norm += c * c;
    const Doubles relative_part = magnitude * limits.rtol;
    sums.out_of_tolerance -= error > relative_part + limits.atol;
    sums.exceeds |= error > relative_part + limits.passing_atol;
    sums.exceeds |= error > magnitude * limits.passing_rtol + limits.atol;
  }
}

OTT_INLINE double Sum(const Doubles& values) {
  double sum = 0;
  for (int i = 0; i < kKernelLanes; ++i) sum += values[i];
  return sum;
}

OTT_INLINE double Max(const Doubles& values) {
  double max = values[0];
  for (int i = 1; i < kKernelLanes; ++i) max = values[i] > max ? values[i] : max;
  return max;
}

template <typename T>
OTT_INLINE BlockFigures CompareBlockBody(const T* reference, const T* current, int64_t count,
                                         const KernelLimits& limits) {
  Accumulators sums;
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    alignas(64) double r[kPiece];
    alignas(64) double c[kPiece];
    alignas(64) double errors[kPiece];
    LoadDoubles(reference + i, size, r);
    LoadDoubles(current + i, size, c);
    LoadErrors(reference + i, current + i, r, c, size, errors);
    Accumulate(r, c, errors, size, limits, sums);
  }
  BlockFigures figures;
  for (int i = 0; i < kKernelLanes; ++i) {
    figures.all_finite &= sums.finite[i] != 0;
    figures.exceeds_passing |= sums.exceeds[i] != 0;
    figures.num_out_of_tolerance += sums.out_of_tolerance[i];
  }
  figures.max_abs_error = Max(sums.max_abs);
  figures.max_rel_error = Max(sums.max_rel);
  figures.sum_abs_errors = Sum(sums.sum_abs);
  figures.sum_squared_errors = Sum(sums.sum_squares);
  figures.dot = Sum(sums.dot);
  figures.reference_norm = Sum(sums.reference_norm);
  figures.current_norm = Sum(sums.current_norm);
  figures.num_bits_differ = CountBitsDiffer(reference, current, count);
  if constexpr (!std::is_integral_v<T>) figures.max_ulp_distance = MaxUlpDistance(reference, current, count);
  return figures;
}

// Sums of squares, without a detour through memory for the types whose bits are, or become by a shift, those
// of a float.

typedef float Floats __attribute__((vector_size(kKernelLanes * 4)));
typedef float TwiceFloats __attribute__((vector_size(kKernelLanes * 8)));
typedef uint32_t Words __attribute__((vector_size(kKernelLanes * 8)));
typedef uint16_t Halves __attribute__((vector_size(kKernelLanes * 4)));

constexpr int kSums = 4;

template <typename T>
OTT_INLINE void AddSquares(const T* elements, int64_t count, Doubles* norms) {
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = count - i < kPiece ? count - i : kPiece;
    alignas(64) double values[kPiece];
    LoadDoubles(elements + i, size, values);
    for (int64_t j = 0; j < size; j += kKernelLanes) {
      Doubles loaded;
      Load(values + j, loaded);
      norms[j / kKernelLanes % kSums] += loaded * loaded;
    }
  }
}

OTT_INLINE void AddSquares(const float* elements, int64_t count, Doubles* norms) {
  for (int64_t i = 0; i < count; i += kKernelLanes) {
    Floats loaded;
    std::memcpy(&loaded, elements + i, sizeof(loaded));
    const Doubles values = __builtin_convertvector(loaded, Doubles);
    norms[i / kKernelLanes % kSums] += values * values;
  }
}

// Calls f(halves, norm) for all elements, eight at a time, the last time maybe with zeros.
template <typename T, typename F>
OTT_INLINE void ForEachHalves(const T* elements, int64_t count, Doubles* norms, const F& f) {
  constexpr int64_t kAtOnce = sizeof(Halves) / sizeof(T);
  Halves halves;
  int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    std::memcpy(&halves, elements + i, sizeof(halves));
    f(halves, norms + i / kAtOnce % 2 * 2);
  }
  halves = Halves{};
  std::memcpy(&halves, elements + i, (count - i) * sizeof(T));
  f(halves, norms);
}

// Adds the squares of floats that have these bits, each shifted.
template <int kShift>
OTT_INLINE void AddSquaresOfHalves(Halves halves, Doubles* norms) {
  const Words words = __builtin_convertvector(halves, Words) << kShift;
  const TwiceFloats floats = reinterpret_cast<TwiceFloats>(words);
  const Doubles low = __builtin_convertvector(__builtin_shufflevector(floats, floats, 0, 1, 2, 3), Doubles);
  const Doubles high = __builtin_convertvector(__builtin_shufflevector(floats, floats, 4, 5, 6, 7), Doubles);
  norms[0] += low * low;
  norms[1] += high * high;
}

OTT_INLINE void AddSquares(const BFloat16* elements, int64_t count, Doubles* norms) {
  ForEachHalves(
      elements, count, norms, [](Halves halves, Doubles * sums) __attribute__((always_inline)) {
        AddSquaresOfHalves<16>(halves, sums);
      });
}

// A binary16's exponent and mantissa in their places of a float are 2^112 too small, infinities and NaN
// finite.
OTT_INLINE void AddSquares(const Float16* elements, int64_t count, Doubles* norms) {
  Halves largest = {};
  ForEachHalves(
      elements, count, norms, [&largest](Halves halves, Doubles * sums) __attribute__((always_inline)) {
        halves &= 0x7fff;
        largest = halves > largest ? halves : largest;
        AddSquaresOfHalves<13>(halves, sums);
      });
  for (int i = 0; i < kSums; ++i) norms[i] *= 0x1p224;
  for (int i = 0; i < 2 * kKernelLanes; ++i) {
    if (largest[i] >= 0x7c00) norms[0] += std::numeric_limits<double>::infinity();
  }
}

template <typename T>
OTT_INLINE EqualBlockFigures CompareEqualBlockBody(const T* reference, const T* current, int64_t count) {
  EqualBlockFigures figures;
  figures.equal = std::memcmp(reference, current, count * sizeof(T)) == 0;
  if (!figures.equal) return figures;
  Doubles norms[kSums] = {};
  AddSquares(reference, count, norms);
  figures.norm = Sum(norms[0] + norms[1]) + Sum(norms[2] + norms[3]);
  return figures;
}

#undef OTT_INLINE

}  // namespace
}  // namespace ott::internal

#endif  // OTT_CORE_COMPARE_COMPARISON_KERNEL_BODY_H_
