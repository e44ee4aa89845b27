// The element types of tensors, for kernels.

#ifndef OTT_CORE_TENSOR_DEVICE_ELEMENT_H_
#define OTT_CORE_TENSOR_DEVICE_ELEMENT_H_

#include <cstdint>

namespace ott {

enum class DType : uint8_t;

namespace internal {

// The real types of elements.
enum class DeviceElement : int {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
};

// The real type, and how many of it an element is.
struct RealElements {
  DeviceElement element;
  int number;
};

RealElements RealElementsOf(DType dtype);

}  // namespace internal
}  // namespace ott

#endif  // OTT_CORE_TENSOR_DEVICE_ELEMENT_H_
