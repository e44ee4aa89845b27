#include "ott/core/dumper/finite_differences.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

template <typename T>
void Differentiate(const TensorView& tensor, const std::function<double()>& function, double step,
                   T* gradient) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const Dims index = IndexAt(tensor.shape(), i);
    T* element = static_cast<T*>(const_cast<void*>(tensor.data()));
    for (size_t d = 0; d < index.size(); ++d) element += index[d] * tensor.strides()[d];
    const T original = *element;
    *element = static_cast<T>(original + step);
    const double above = *element;
    const double function_above = function();
    *element = static_cast<T>(original - step);
    const double below = *element;
    const double function_below = function();
    *element = original;
    // The step that was taken, which is not step after rounding.
    gradient[i] = static_cast<T>((function_above - function_below) / (above - below));
  }
}

absl::StatusOr<Gradient> GradientOf(const NamedTensor& named, const std::function<double()>& function,
                                    double step) {
  const TensorView& view = named.tensor.view;
  const bool is_float = view.dtype() == DType::kFloat32;
  if (view.device().kind != Device::Kind::kHost || (!is_float && view.dtype() != DType::kFloat64)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", named.path, "': finite differences are taken of float32 and float64 tensors in host memory"));
  }
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, AllocateHost(view.num_bytes()));
  if (is_float) {
    Differentiate(view, function, step, static_cast<float*>(memory.get()));
  } else {
    Differentiate(view, function, step, static_cast<double*>(memory.get()));
  }
  Gradient gradient;
  gradient.kind = Gradient::Kind::kComputed;
  gradient.gradient = Tensor{TensorView(memory.get(), view.dtype(), view.shape()), memory};
  return gradient;
}

}  // namespace

GradientProvider FiniteDifferences(std::function<double()> function, double step) {
  return [function = std::move(function),
          step](absl::Span<const NamedTensor> tensors) -> absl::StatusOr<std::vector<Gradient>> {
    std::vector<Gradient> gradients;
    for (const NamedTensor& tensor : tensors) {
      OTT_ASSIGN_OR_RETURN(Gradient gradient, GradientOf(tensor, function, step));
      gradients.push_back(std::move(gradient));
    }
    return gradients;
  };
}

}  // namespace ott
