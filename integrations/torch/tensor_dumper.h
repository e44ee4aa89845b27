// TensorDumper for LibTorch's tensors, and gradients by its autograd.

#ifndef OTT_INTEGRATIONS_TORCH_TENSOR_DUMPER_H_
#define OTT_INTEGRATIONS_TORCH_TENSOR_DUMPER_H_

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/dump/tensor_dumper.h"

namespace ott {

// TensorDumper's calls of the same names. What is not active costs one load and a branch.
//
//   AddTensorData(dumper, "output", output);
//   AddGradData(dumper, "weights.w1", w1, DumpFormat::kBinary);
//   SetGradients(dumper, {loss});                                  // before loss.backward(), or with its
//   graph kept loss.backward();
//
// Errors: as FromTorch(), with the path, and as TensorDumper's. CUDA tensors are read in the order of the
// default stream; for another one, pass TensorDumper what FromTorch() returns.
absl::Status AddTensorData(TensorDumper& dumper, std::string_view path, const at::Tensor& tensor,
                           const AddOptions& options);
absl::Status AddGradData(TensorDumper& dumper, std::string_view path, const at::Tensor& tensor,
                         const AddOptions& options);

inline absl::Status AddTensorData(TensorDumper& dumper, std::string_view path, const at::Tensor& tensor,
                                  DumpFormat format = DumpFormat::kJson) {
  return dumper.active() ? AddTensorData(dumper, path, tensor, AddOptions{format, {}}) : absl::OkStatus();
}
inline absl::Status AddGradData(TensorDumper& dumper, std::string_view path, const at::Tensor& tensor,
                                DumpFormat format = DumpFormat::kJson) {
  return dumper.active() ? AddGradData(dumper, path, tensor, AddOptions{format, {}}) : absl::OkStatus();
}

// dumper.SetGradients(TorchGradientProvider(function_values)).
absl::Status SetGradients(TensorDumper& dumper, const std::vector<at::Tensor>& function_values);

// Computes the gradients of the sum of function_values with torch::autograd::grad; its graph is kept, and
// Tensor::grad() of no tensor is touched. The tensors asked for must be FromTorch()'s.
//
// INVALID_ARGUMENT for other tensors; what autograd throws becomes an error with its message, for example
// where a function value has several elements, or the graph was freed by a backward pass.
GradientProvider TorchGradientProvider(std::vector<at::Tensor> function_values);

}  // namespace ott

#endif  // OTT_INTEGRATIONS_TORCH_TENSOR_DUMPER_H_
