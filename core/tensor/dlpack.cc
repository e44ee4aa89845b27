#include "ott/core/tensor/dlpack.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

// DLDataTypeCode.
enum Code : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBFloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E5M2 = 12,
};

struct Known {
  Code code;
  uint8_t bits;
  DType dtype;
};

constexpr Known kKnown[] = {
    {kFloat, 64, DType::kFloat64},
    {kFloat, 32, DType::kFloat32},
    {kFloat, 16, DType::kFloat16},
    {kBFloat, 16, DType::kBFloat16},
    {kFloat8E4M3FN, 8, DType::kFloat8E4M3},
    {kFloat8E5M2, 8, DType::kFloat8E5M2},
    {kInt, 8, DType::kInt8},
    {kInt, 16, DType::kInt16},
    {kInt, 32, DType::kInt32},
    {kInt, 64, DType::kInt64},
    {kUInt, 8, DType::kUInt8},
    {kUInt, 16, DType::kUInt16},
    {kUInt, 32, DType::kUInt32},
    {kUInt, 64, DType::kUInt64},
    {kBool, 8, DType::kBool},
    {kComplex, 64, DType::kComplex64},
    {kComplex, 128, DType::kComplex128},
};

absl::StatusOr<DType> DTypeFrom(dlpack::DataType type) {
  for (const Known& known : kKnown) {
    if (type.lanes == 1 && type.code == known.code && type.bits == known.bits) return known.dtype;
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
