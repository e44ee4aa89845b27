// Elements of a host tensor with any strides, laid out one after another.

#ifndef OTT_CORE_TENSOR_STRIDED_COPY_H_
#define OTT_CORE_TENSOR_STRIDED_COPY_H_

#include <cstdint>

#include "ott/core/tensor/tensor_view.h"

namespace ott {

// Copies the elements at row-major positions [begin, end) of a host tensor to destination, without gaps.
// REQUIRES: tensor.device().kind == kHost; 0 <= begin <= end <= tensor.num_elements()
void CopyElements(const TensorView& tensor, int64_t begin, int64_t end, void* destination);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_STRIDED_COPY_H_
