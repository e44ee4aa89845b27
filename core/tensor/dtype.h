// The element types of tensors.

#ifndef OTT_CORE_TENSOR_DTYPE_H_
#define OTT_CORE_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "absl/status/statusor.h"

namespace ott {

// The one table of dtypes. A row: enumerator, C++ type of an element (element.h), PyTorch's name without its
// prefix, bytes, at::ScalarType's name, NumPy's type string, safetensors' name ("": the format has none),
// DLPack's type code; of floating-point numbers, and of the parts of complex ones, the bits of exponent and
// mantissa, torch.testing.assert_close's rtol and atol, and false if there are no infinities.
// clang-format off
#define OTT_FLOATING_POINT_DTYPES(X)                                                                        \
  X(kFloat64, double, "float64", 8, "Double", "<f8", "F64", 2, 11, 52, 1e-7, 1e-7)                          \
  X(kFloat32, float, "float32", 4, "Float", "<f4", "F32", 2, 8, 23, 1.3e-6, 1e-5)                           \
  X(kFloat16, Float16, "float16", 2, "Half", "<f2", "F16", 2, 5, 10, 1e-3, 1e-5)                            \
  X(kBFloat16, BFloat16, "bfloat16", 2, "BFloat16", "", "BF16", 4, 8, 7, 1.6e-2, 1e-5)                      \
  /* NaN is 0x7f and 0xff */                                                                                \
  X(kFloat8E4M3, Float8E4M3, "float8_e4m3fn", 1, "Float8_e4m3fn", "", "F8_E4M3", 10, 4, 3, 0, 0, false)     \
  X(kFloat8E5M2, Float8E5M2, "float8_e5m2", 1, "Float8_e5m2", "", "F8_E5M2", 12, 5, 2, 0, 0)
#define OTT_INTEGER_DTYPES(X)                                                                               \
  X(kInt8, int8_t, "int8", 1, "Char", "|i1", "I8", 0)                                                       \
  X(kInt16, int16_t, "int16", 2, "Short", "<i2", "I16", 0)                                                  \
  X(kInt32, int32_t, "int32", 4, "Int", "<i4", "I32", 0)                                                    \
  X(kInt64, int64_t, "int64", 8, "Long", "<i8", "I64", 0)                                                   \
  X(kUInt8, uint8_t, "uint8", 1, "Byte", "|u1", "U8", 1)                                                    \
  X(kUInt16, uint16_t, "uint16", 2, "UInt16", "<u2", "U16", 1)                                              \
  X(kUInt32, uint32_t, "uint32", 4, "UInt32", "<u4", "U32", 1)                                              \
  X(kUInt64, uint64_t, "uint64", 8, "UInt64", "<u8", "U64", 1)
#define OTT_OTHER_DTYPES(X)                                                                                 \
  X(kBool, bool, "bool", 1, "Bool", "|b1", "BOOL", 6) /* 0 or 1 */                                          \
  X(kComplex64, std::complex<float>, "complex64", 8, "ComplexFloat", "<c8", "", 5, 8, 23, 1.3e-6, 1e-5)     \
  X(kComplex128, std::complex<double>, "complex128", 16, "ComplexDouble", "<c16", "", 5, 11, 52, 1e-7, 1e-7)
// clang-format on
#define OTT_DTYPES(X) OTT_FLOATING_POINT_DTYPES(X) OTT_INTEGER_DTYPES(X) OTT_OTHER_DTYPES(X)

enum class DType : uint8_t {
#define OTT_ENUMERATOR(dtype, ...) dtype,
  OTT_DTYPES(OTT_ENUMERATOR)
#undef OTT_ENUMERATOR
};

// A row of the table.
struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t size;
  std::string_view scalar_type;
  std::string_view numpy;
  std::string_view safetensors;
  uint8_t dlpack_code;
  int exponent_bits = 0;
  int mantissa_bits = 0;
  double rtol = 0;
  double atol = 0;
  bool has_infinities = true;
};

// In the order of the enumeration.
inline constexpr DTypeInfo kDTypes[] = {
#define OTT_ROW(dtype, element, ...) {DType::dtype, __VA_ARGS__},
    OTT_DTYPES(OTT_ROW)
#undef OTT_ROW
};

inline constexpr int kNumDTypes = std::size(kDTypes);

constexpr const DTypeInfo& InfoOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) { return InfoOf(dtype).size; }

// Returns PyTorch's name without its prefix: "float32", "bfloat16", "float8_e4m3fn", ...
constexpr std::string_view Name(DType dtype) { return InfoOf(dtype).name; }

// Returns the inverse of Name. INVALID_ARGUMENT for another name.
absl::StatusOr<DType> ParseDType(std::string_view name);

bool IsFloatingPoint(DType dtype);  // complex types are not

// Returns half of the distance of neighbouring numbers, relative to them; of a complex dtype, of its parts. 0
// for integers and bool.
double UnitRoundoff(DType dtype);

// Returns the smallest number above 0, subnormal ones included, of a dtype that UnitRoundoff is not 0 for.
double SmallestPositive(DType dtype);

constexpr bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

}  // namespace ott

#endif  // OTT_CORE_TENSOR_DTYPE_H_
