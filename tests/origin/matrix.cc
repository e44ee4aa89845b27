#include "ott/tests/origin/matrix.h"

#include "ott/core/tensor/element.h"

namespace ott::origin {

float RoundTo(float value, DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return FromDouble<BFloat16>(value);
    case DType::kFloat8E4M3:
      return FromDouble<Float8E4M3>(value);
    default:
      return value;
  }
}

Matrix Matrix::As(DType other) const {
  Matrix result = *this;
  result.dtype = other;
  for (float& value : result.data) value = RoundTo(value, other);
  return result;
}

Matrix Times(const Matrix& a, const Matrix& b) {
  Matrix result = a;
  for (size_t i = 0; i < a.data.size(); ++i) result.data[i] = RoundTo(a.data[i] * b.data[i], a.dtype);
  return result;
}

Matrix Plus(const Matrix& a, const Matrix& b) {
  Matrix result = a;
  for (size_t i = 0; i < a.data.size(); ++i) result.data[i] = RoundTo(a.data[i] + b.data[i], a.dtype);
  return result;
}

}  // namespace ott::origin
