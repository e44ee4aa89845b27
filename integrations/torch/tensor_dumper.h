// LibTorch's tensors in dumps, and gradients by its autograd.

#ifndef OTT_INTEGRATIONS_TORCH_TENSOR_DUMPER_H_
#define OTT_INTEGRATIONS_TORCH_TENSOR_DUMPER_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "ott/core/dumper/tensor_dumper.h"

namespace ott {

// Lets the dumper take each at::Tensor from now on, as FromTorch() reads it: alone, in vectors, and in what
// other converters return.
//
//   EnableTorchTensorDumping(dumper);                             // once, in main
//   dumper.AddTensorData("hidden", hidden, DumpFormat::kBinary);
//   dumper.AddGradData("hidden", hidden);
//   dumper.SetGradients(TorchGradientProvider({loss}));           // before loss.backward()
//
// CUDA tensors are read in the order of the default stream; for another one, add what FromTorch() returns.
void EnableTorchTensorDumping(TensorDumper& dumper);

// Computes the gradients of the sum of function_values with torch::autograd::grad; the graph is kept, and
// Tensor::grad() of no tensor is touched. Sparse gradients are dumped as dense ones.
//
// INVALID_ARGUMENT for tensors that FromTorch() did not make; what autograd throws becomes an error with its
// message, for example if a function value has several elements, or the graph was freed by a backward pass.
GradientProvider TorchGradientProvider(std::vector<at::Tensor> function_values);

}  // namespace ott

#endif  // OTT_INTEGRATIONS_TORCH_TENSOR_DUMPER_H_
