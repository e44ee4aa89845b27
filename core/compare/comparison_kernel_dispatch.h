// Chooses which of the compiled kernels runs.

#ifndef OTT_CORE_COMPARE_COMPARISON_KERNEL_DISPATCH_H_
#define OTT_CORE_COMPARE_COMPARISON_KERNEL_DISPATCH_H_

#include "ott/core/compare/comparison_kernel.h"

// Applies a macro (dtype, element type, ...) to every dtype that has kernels.
#define OTT_FOR_EACH_KERNEL_TYPE(macro) OTT_FLOATING_POINT_DTYPES(macro) OTT_INTEGER_DTYPES(macro)

namespace ott::internal {

template <typename T>
struct Kernels {
  BlockFigures (*compare_block)(const T*, const T*, int64_t, const KernelLimits&);
  EqualBlockFigures (*compare_equal_block)(const T*, const T*, int64_t);
};

// Returns null kernels where this machine has no AVX2.
template <typename T>
Kernels<T> Avx2Kernels();

}  // namespace ott::internal

#endif  // OTT_CORE_COMPARE_COMPARISON_KERNEL_DISPATCH_H_
