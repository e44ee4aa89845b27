#include "ott/core/tensor/device_element.h"

#include "ott/core/tensor/dtype.h"

namespace ott::internal {

RealElements RealElementsOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {DeviceElement::kFloat64, 1};
    case DType::kFloat32:
      return {DeviceElement::kFloat32, 1};
    case DType::kFloat16:
      return {DeviceElement::kFloat16, 1};
    case DType::kBFloat16:
      return {DeviceElement::kBFloat16, 1};
    case DType::kFloat8E4M3:
      return {DeviceElement::kFloat8E4M3, 1};
    case DType::kFloat8E5M2:
      return {DeviceElement::kFloat8E5M2, 1};
    case DType::kInt8:
      return {DeviceElement::kInt8, 1};
    case DType::kInt16:
      return {DeviceElement::kInt16, 1};
    case DType::kInt32:
      return {DeviceElement::kInt32, 1};
    case DType::kInt64:
      return {DeviceElement::kInt64, 1};
    case DType::kUInt8:
    case DType::kBool:
      return {DeviceElement::kUInt8, 1};
    case DType::kUInt16:
      return {DeviceElement::kUInt16, 1};
    case DType::kUInt32:
      return {DeviceElement::kUInt32, 1};
    case DType::kUInt64:
      return {DeviceElement::kUInt64, 1};
    case DType::kComplex64:
      return {DeviceElement::kFloat32, 2};
    case DType::kComplex128:
      break;
  }
  return {DeviceElement::kFloat64, 2};
}

}  // namespace ott::internal
