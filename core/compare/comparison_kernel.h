// The inner loops of the comparison of real numbers: figures of one block of elements.
//
// Written with the compiler's vector extensions, eight elements at a time, so that any machine runs them and
// AVX2 is used where it is there. A block whose figures cannot be trusted, since an element is not finite,
// says so.

#ifndef OTT_CORE_COMPARE_COMPARISON_KERNEL_H_
#define OTT_CORE_COMPARE_COMPARISON_KERNEL_H_

#include <cstdint>
#include <type_traits>

#include "ott/core/tensor/element.h"

namespace ott::internal {

inline constexpr int kKernelLanes = 4;

// An unsigned integer as large as T.
template <typename T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

struct KernelLimits {
  double atol = 0;
  double rtol = 0;
  double passing_atol = 0;
  double passing_rtol = 0;
};

struct BlockFigures {
  bool all_finite = true;
  // Some error needs larger passing tolerances than the limits have.
  bool exceeds_passing = false;
  double max_abs_error = 0;
  double max_rel_error = 0;
  double sum_abs_errors = 0;
  double sum_squared_errors = 0;
  double dot = 0;
  double reference_norm = 0;  // sum of squares
  double current_norm = 0;
  int64_t num_out_of_tolerance = 0;
  int64_t num_bits_differ = 0;
  uint64_t max_ulp_distance = 0;  // of floating-point types
};

// T: every element type but bool and the complex ones.
// REQUIRES: count is a multiple of kKernelLanes.
template <typename T>
BlockFigures CompareBlock(const T* reference, const T* current, int64_t count, const KernelLimits& limits);

struct EqualBlockFigures {
  bool equal = false;  // bit for bit
  double norm = 0;     // of the reference; not finite where an element, or the sum, is not
};

// REQUIRES: count is a multiple of kKernelLanes.
template <typename T>
EqualBlockFigures CompareEqualBlock(const T* reference, const T* current, int64_t count);

}  // namespace ott::internal

#endif  // OTT_CORE_COMPARE_COMPARISON_KERNEL_H_
