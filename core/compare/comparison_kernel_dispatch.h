// Which of the compiled kernels runs.

#ifndef OTT_CORE_COMPARE_COMPARISON_KERNEL_DISPATCH_H_
#define OTT_CORE_COMPARE_COMPARISON_KERNEL_DISPATCH_H_

#include "ott/core/compare/comparison_kernel.h"

// Applies a macro to every element type that has kernels.
#define OTT_FOR_EACH_KERNEL_TYPE(macro)                                                         \
  macro(double) macro(float) macro(Float16) macro(BFloat16) macro(Float8E4M3) macro(Float8E5M2) \
      macro(int8_t) macro(int16_t) macro(int32_t) macro(int64_t) macro(uint8_t) macro(uint16_t) \
          macro(uint32_t) macro(uint64_t)

namespace ott::internal {

template <typename T>
struct Kernels {
  BlockFigures (*compare_block)(const T*, const T*, int64_t, const KernelLimits&);
  EqualBlockFigures (*compare_equal_block)(const T*, const T*, int64_t);
};

// Null kernels where this machine has no AVX2.
template <typename T>
Kernels<T> Avx2Kernels();

}  // namespace ott::internal

#endif  // OTT_CORE_COMPARE_COMPARISON_KERNEL_DISPATCH_H_
