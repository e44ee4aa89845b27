#include "ott/integrations/torch/tensor_dumper.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <exception>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ott/core/base/status_macros.h"
#include "ott/integrations/torch/tensor.h"

namespace ott {
namespace {

absl::Status InTensor(std::string_view path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("tensor '", std::string(path), "': ", status.message()));
}

// The same numbers as FromTorch() reads them; the caller has no hand in the form of a gradient.
at::Tensor Materialized(const at::Tensor& gradient) {
  const at::Tensor dense = gradient.layout() == at::kStrided ? gradient : gradient.to_dense();
  return dense.resolve_conj().resolve_neg();
}

absl::StatusOr<std::vector<at::Tensor>> Differentiate(const std::vector<at::Tensor>& function_values,
                                                      const std::vector<at::Tensor>& variables) {
  if (variables.empty()) return std::vector<at::Tensor>();
  try {
    std::vector<at::Tensor> gradients =
        torch::autograd::grad(function_values, variables, /*grad_outputs=*/{}, /*retain_graph=*/true,
                              /*create_graph=*/false, /*allow_unused=*/true);
    for (at::Tensor& gradient : gradients) {
      if (gradient.defined()) gradient = Materialized(gradient);
    }
    return gradients;
  } catch (const c10::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat("gradients: ", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("gradients: ", error.what()));
  }
}

absl::StatusOr<std::vector<Gradient>> ComputeGradients(const std::vector<at::Tensor>& function_values,
                                                       absl::Span<const NamedTensor> tensors) {
  std::vector<Gradient> gradients(tensors.size());
  std::vector<at::Tensor> variables;
  std::vector<size_t> positions;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor* const tensor = TorchTensorOf(tensors[i].tensor);
    if (tensor == nullptr) {
      return InTensor(tensors[i].path, absl::InvalidArgumentError(
                                           "not made by FromTorch(), so LibTorch has no gradient for it"));
    }
    if (!tensor->requires_grad()) {
      gradients[i].kind = Gradient::Kind::kRequiresNoGrad;
      continue;
    }
    variables.push_back(*tensor);
    positions.push_back(i);
  }
  OTT_ASSIGN_OR_RETURN(const std::vector<at::Tensor> found, Differentiate(function_values, variables));
  for (size_t i = 0; i < found.size(); ++i) {
    Gradient& gradient = gradients[positions[i]];
    if (!found[i].defined()) continue;
    absl::StatusOr<Tensor> computed = FromTorch(found[i]);
    if (!computed.ok()) return InTensor(tensors[positions[i]].path, computed.status());
    gradient.kind = Gradient::Kind::kComputed;
    gradient.gradient = *std::move(computed);
  }
  return gradients;
}

}  // namespace

void EnableTorchTensorDumping(TensorDumper& dumper) {
  dumper.RegisterConverter<at::Tensor>([](const at::Tensor& tensor) { return FromTorch(tensor); });
}

GradientProvider TorchGradientProvider(std::vector<at::Tensor> function_values) {
  return [function_values = std::move(function_values)](absl::Span<const NamedTensor> tensors) {
    return ComputeGradients(function_values, tensors);
  };
}

}  // namespace ott
