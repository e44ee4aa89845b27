// LibTorch's tensors as ours, without a copy.

#ifndef OTT_INTEGRATIONS_TORCH_TENSOR_H_
#define OTT_INTEGRATIONS_TORCH_TENSOR_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "ott/core/tensor/dtype.h"
#include "ott/core/tensor/tensor.h"

namespace ott {

// Returns the dtype. UNIMPLEMENTED for an element type that is no DType: quantized ones, complex halves.
absl::StatusOr<DType> DTypeFromTorch(at::ScalarType type);

// The tensor's memory with its shape and strides, which the result keeps alive. Whether it requires a
// gradient does not matter. stream: the cudaStream_t on which a CUDA tensor's contents are ready, such as
// c10::cuda::getCurrentCUDAStream().stream(); null: the default.
//
// UNIMPLEMENTED for what does not lie in memory element by element, the message saying how to make it so:
// sparse and other layouts, quantized tensors, conjugated and negated views that were not materialised, other
// devices. INVALID_ARGUMENT for an undefined tensor and for one without memory.
absl::StatusOr<Tensor> FromTorch(const at::Tensor& tensor, void* stream = nullptr);

// Returns what FromTorch() made the tensor from; null if something else made it. Lives as long as
// tensor.owner.
const at::Tensor* TorchTensorOf(const Tensor& tensor);

}  // namespace ott

#endif  // OTT_INTEGRATIONS_TORCH_TENSOR_H_
