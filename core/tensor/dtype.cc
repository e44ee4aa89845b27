#include "ott/core/tensor/dtype.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ott {

absl::StatusOr<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& known : kDTypes) {
    if (known.name == name) return known.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::string_view(name.data(), name.size()), "' is not the name of a dtype"));
}

bool IsFloatingPoint(DType dtype) {
  switch (dtype) {
#define OTT_CASE(dtype, ...) case DType::dtype:
    OTT_FLOATING_POINT_DTYPES(OTT_CASE)
    return true;
    OTT_INTEGER_DTYPES(OTT_CASE)
    OTT_OTHER_DTYPES(OTT_CASE)
    return false;
#undef OTT_CASE
  }
  __builtin_unreachable();
}

double UnitRoundoff(DType dtype) {
  const DTypeInfo& info = InfoOf(dtype);
  return info.mantissa_bits == 0 ? 0 : std::ldexp(0.5, -info.mantissa_bits);
}

double SmallestPositive(DType dtype) {
  const DTypeInfo& info = InfoOf(dtype);
  const int bias = (1 << (info.exponent_bits - 1)) - 1;
  return std::ldexp(1.0, 1 - bias - info.mantissa_bits);
}

}  // namespace ott
