// The element types of tensors.

#ifndef OTT_CORE_TENSOR_DTYPE_H_
#define OTT_CORE_TENSOR_DTYPE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace ott {

enum class DType : uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,  // torch.float8_e4m3fn: no infinities, NaN is 0x7f and 0xff
  kFloat8E5M2,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,  // one byte, 0 or 1
  kComplex64,
  kComplex128,
};

inline constexpr int kNumDTypes = 17;

// Bytes of one element.
int64_t SizeOf(DType dtype);

// PyTorch's name without its prefix: "float32", "bfloat16", "float8_e4m3fn", ...
std::string_view Name(DType dtype);

// The inverse of Name. INVALID_ARGUMENT for another name.
absl::StatusOr<DType> ParseDType(std::string_view name);

bool IsFloatingPoint(DType dtype);  // complex types are not

}  // namespace ott

#endif  // OTT_CORE_TENSOR_DTYPE_H_
