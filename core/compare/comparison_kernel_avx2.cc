#include "ott/core/compare/comparison_kernel_body.h"
#include "ott/core/compare/comparison_kernel_dispatch.h"

namespace ott::internal {
namespace {

template <typename T>
__attribute__((target("avx2"))) BlockFigures CompareBlockAvx2(const T* reference, const T* current,
                                                              int64_t count, const KernelLimits& limits) {
  return CompareBlockBody(reference, current, count, limits);
}

template <typename T>
__attribute__((target("avx2"))) EqualBlockFigures CompareEqualBlockAvx2(const T* reference, const T* current,
                                                                        int64_t count) {
  return CompareEqualBlockBody(reference, current, count);
}

}  // namespace

template <typename T>
Kernels<T> Avx2Kernels() {
  if (!__builtin_cpu_supports("avx2")) return {nullptr, nullptr};
  return {CompareBlockAvx2<T>, CompareEqualBlockAvx2<T>};
}

#define OTT_INSTANTIATE(dtype, T, ...) template Kernels<T> Avx2Kernels();
OTT_FOR_EACH_KERNEL_TYPE(OTT_INSTANTIATE)
#undef OTT_INSTANTIATE

}  // namespace ott::internal
