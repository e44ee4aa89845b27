#include "ott/core/compare/comparison_kernel_dispatch.h"

namespace ott::internal {

template <typename T>
Kernels<T> Avx2Kernels() {
  return {nullptr, nullptr};
}

#define OTT_INSTANTIATE(dtype, T, ...) template Kernels<T> Avx2Kernels();
OTT_FOR_EACH_KERNEL_TYPE(OTT_INSTANTIATE)
#undef OTT_INSTANTIATE

}  // namespace ott::internal
