#include "ott/core/tensor/dlpack.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

absl::StatusOr<DType> DTypeFrom(dlpack::DataType type) {
  for (const DTypeInfo& known : kDTypes) {
    if (type.lanes == 1 && type.code == known.dlpack_code && type.bits == 8 * known.size) return known.dtype;
  }
  return absl::UnimplementedError(absl::StrCat("a DLPack tensor of type code ", type.code, ", ", type.bits,
                                               " bits, ", type.lanes, " lanes has no dtype here"));
}

absl::StatusOr<Device> DeviceFrom(dlpack::Device from, void* stream) {
  Device device;
  switch (from.device_type) {
    case 1:  // kDLCPU
    case 3:  // kDLCUDAHost
      return device;
    case 2:   // kDLCUDA
    case 13:  // kDLCUDAManaged
      device.kind = Device::Kind::kCuda;
      device.ordinal = from.device_id;
      device.stream = stream;
      return device;
    default:
      return absl::UnimplementedError(
          absl::StrCat("a DLPack tensor on a device of type ", from.device_type, " cannot be read"));
  }
}

absl::StatusOr<TensorView> ViewOf(const dlpack::DLTensor& tensor, void* stream) {
  OTT_ASSIGN_OR_RETURN(const DType dtype, DTypeFrom(tensor.dtype));
  OTT_ASSIGN_OR_RETURN(const Device device, DeviceFrom(tensor.device, stream));
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
    return absl::InvalidArgumentError("a DLPack tensor without a shape");
  }
  const absl::Span<const int64_t> shape(tensor.shape, tensor.ndim);
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, shape));
  if (tensor.data == nullptr && num_bytes > 0)
    return absl::InvalidArgumentError("a DLPack tensor without data");
  const void* const data =
      tensor.data == nullptr ? nullptr : static_cast<const char*>(tensor.data) + tensor.byte_offset;
  if (tensor.strides == nullptr) return TensorView(data, dtype, shape, device);
  return TensorView(data, dtype, shape, absl::MakeConstSpan(tensor.strides, tensor.ndim), device);
}

template <typename Managed>
std::shared_ptr<const void> Own(Managed* managed) {
  return std::shared_ptr<const void>(managed, [managed](const void*) {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

}  // namespace

absl::StatusOr<Tensor> FromDLPack(dlpack::ManagedTensor* managed, void* stream) {
  std::shared_ptr<const void> owner = Own(managed);
  OTT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(managed->dl_tensor, stream));
  return Tensor{view, std::move(owner)};
}

absl::StatusOr<Tensor> FromDLPack(dlpack::ManagedTensorVersioned* managed, void* stream) {
  std::shared_ptr<const void> owner = Own(managed);
  if (managed->major_version != 1) {
    return absl::UnimplementedError(
        absl::StrCat("DLPack version ", managed->major_version, ", while this program knows version 1"));
  }
  OTT_ASSIGN_OR_RETURN(const TensorView view, ViewOf(managed->dl_tensor, stream));
  return Tensor{view, std::move(owner)};
}

}  // namespace ott
