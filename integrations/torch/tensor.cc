#include "ott/integrations/torch/tensor.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

using DTypes = std::array<std::optional<DType>, static_cast<size_t>(at::ScalarType::NumOptions)>;

// By name: LibTorch 1.13 has fewer types than 2.x.
DTypes MakeDTypes() {
  DTypes dtypes;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    for (const DTypeInfo& known : kDTypes) {
      if (known.scalar_type == c10::toString(static_cast<at::ScalarType>(i))) dtypes[i] = known.dtype;
    }
  }
  return dtypes;
}

absl::StatusOr<Device> DeviceFrom(c10::Device from, void* stream) {
  if (from.is_cpu()) return Device();
  if (!from.is_cuda()) {
    return absl::UnimplementedError(
        absl::StrCat("a tensor on device ", from.str(), " cannot be read; copy it with .cpu()"));
  }
  Device device;
  device.kind = Device::Kind::kCuda;
  device.ordinal = from.index();
  device.stream = stream;
  return device;
}

absl::Status CheckReadable(const at::Tensor& tensor) {
  if (!tensor.defined()) return absl::InvalidArgumentError("the tensor is undefined");
  if (tensor.is_quantized()) {
    return absl::UnimplementedError("a quantized tensor cannot be read; convert it with .dequantize()");
  }
  if (tensor.layout() != at::kStrided || tensor.is_nested()) {
    return absl::UnimplementedError(
        "a tensor of a sparse, nested or other layout that is not strided cannot be read; "
        "convert it with .to_dense()");
  }
  if (tensor.is_conj() || tensor.is_neg()) {
    return absl::UnimplementedError(
        "a conjugated or negated view cannot be read; call .resolve_conj() or .resolve_neg()");
  }
  return absl::OkStatus();
}

// Marks the owners that FromTorch() makes.
struct DeleteTorchTensor {
  void operator()(const at::Tensor* tensor) const { delete tensor; }
};

absl::StatusOr<TensorView> ViewOf(const at::Tensor& tensor, void* stream) {
  OTT_RETURN_IF_ERROR(CheckReadable(tensor));
  OTT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromTorch(tensor.scalar_type()));
  OTT_ASSIGN_OR_RETURN(const Device device, DeviceFrom(tensor.device(), stream));
  const void* const data = tensor.data_ptr();
  if (data == nullptr && tensor.numel() > 0) {
    return absl::InvalidArgumentError("the tensor has elements, but no memory");
  }
  const c10::IntArrayRef shape = tensor.sizes();
  const c10::IntArrayRef strides = tensor.strides();
  return TensorView(data, dtype, {shape.data(), shape.size()}, {strides.data(), strides.size()}, device);
}

}  // namespace

absl::StatusOr<DType> DTypeFromTorch(at::ScalarType type) {
  static const DTypes dtypes = MakeDTypes();
  const auto index = static_cast<size_t>(type);
  if (index < dtypes.size() && dtypes[index].has_value()) return *dtypes[index];
  return absl::UnimplementedError(
      absl::StrCat("tensors of element type ", c10::toString(type), " cannot be read"));
}

absl::StatusOr<Tensor> FromTorch(const at::Tensor& tensor, void* stream) {
  try {
    OTT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(tensor, stream));
    return Tensor{view, std::shared_ptr<const void>(new const at::Tensor(tensor), DeleteTorchTensor())};
  } catch (const c10::Error& error) {
    // Tensors of LibTorch's extensions, which have no memory of their own.
    return absl::UnimplementedError(error.what_without_backtrace());
  }
}

const at::Tensor* TorchTensorOf(const Tensor& tensor) {
  if (std::get_deleter<DeleteTorchTensor>(tensor.owner) == nullptr) return nullptr;
  return static_cast<const at::Tensor*>(tensor.owner.get());
}

}  // namespace ott
