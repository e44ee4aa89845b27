#include "ott/core/compare/comparison_kernel.h"

#include "ott/core/compare/comparison_kernel_body.h"
#include "ott/core/compare/comparison_kernel_dispatch.h"

namespace ott::internal {
namespace {

template <typename T>
Kernels<T> FastestKernels() {
  const Kernels<T> avx2 = Avx2Kernels<T>();
  if (avx2.compare_block != nullptr) return avx2;
  return {[](const T* reference, const T* current, int64_t count, const KernelLimits& limits) {
            return CompareBlockBody(reference, current, count, limits);
          },
          [](const T* reference, const T* current, int64_t count) {
            return CompareEqualBlockBody(reference, current, count);
          }};
}

template <typename T>
const Kernels<T>& ChosenKernels() {
  static const Kernels<T> kernels = FastestKernels<T>();
  return kernels;
}

}  // namespace

template <typename T>
BlockFigures CompareBlock(const T* reference, const T* current, int64_t count, const KernelLimits& limits) {
  return ChosenKernels<T>().compare_block(reference, current, count, limits);
}

template <typename T>
EqualBlockFigures CompareEqualBlock(const T* reference, const T* current, int64_t count) {
  return ChosenKernels<T>().compare_equal_block(reference, current, count);
}

#define OTT_INSTANTIATE(dtype, T, ...)                                                  \
  template BlockFigures CompareBlock(const T*, const T*, int64_t, const KernelLimits&); \
  template EqualBlockFigures CompareEqualBlock(const T*, const T*, int64_t);
OTT_FOR_EACH_KERNEL_TYPE(OTT_INSTANTIATE)
#undef OTT_INSTANTIATE

}  // namespace ott::internal
