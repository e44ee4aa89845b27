// Matrices of a simulated training, and sums over them in the order that is asked for.

#ifndef OTT_TESTS_ORIGIN_MATRIX_H_
#define OTT_TESTS_ORIGIN_MATRIX_H_

#include <cstddef>
#include <vector>

#include "ott/core/tensor/dtype.h"

namespace ott::origin {

float RoundTo(float value, DType dtype);

// Numbers of `dtype`, held as floats.
struct Matrix {
  Matrix() = default;
  Matrix(int rows, int columns, DType dtype = DType::kFloat32)
      : rows(rows), columns(columns), dtype(dtype), data(static_cast<size_t>(rows) * columns) {}

  float& at(int row, int column) { return data[static_cast<size_t>(row) * columns + column]; }
  float at(int row, int column) const { return data[static_cast<size_t>(row) * columns + column]; }
  Matrix As(DType other) const;

  int rows = 0;
  int columns = 0;
  DType dtype = DType::kFloat32;
  std::vector<float> data;
};

// Multiplies element by element, in the dtype of a.
Matrix Times(const Matrix& a, const Matrix& b);
Matrix Plus(const Matrix& a, const Matrix& b);

// Says how sums are made; the results differ in rounding only.
struct SumOrder {
  // Parts that are summed by themselves: threads, or split-K.
  int num_parts = 1;
  bool from_last = false;
  // Partial sums side by side, as vector instructions have them.
  int num_lanes = 1;
  bool fused_multiply_add = false;
  // Ranks are added from the last.
  bool ranks_from_last = false;
};

// Returns a sum of products of `count` terms. narrow: each partial sum is rounded to bfloat16.
template <typename Left, typename Right>
float Dot(const SumOrder& order, int count, bool narrow, const Left& left, const Right& right) {
  float total = 0;
  for (int part = 0; part < order.num_parts; ++part) {
    const int begin = count * part / order.num_parts;
    const int end = count * (part + 1) / order.num_parts;
    float lanes[8] = {};
    for (int step = begin; step < end; ++step) {
      const int k = order.from_last ? begin + end - 1 - step : step;
      float& lane = lanes[(step - begin) % order.num_lanes];
      lane = order.fused_multiply_add ? std::fma(left(k), right(k), lane) : lane + left(k) * right(k);
      if (narrow) lane = RoundTo(lane, DType::kBFloat16);
    }
    for (int lane = 0; lane < order.num_lanes; ++lane) total += lanes[lane];
  }
  return narrow ? RoundTo(total, DType::kBFloat16) : total;
}

}  // namespace ott::origin

#endif  // OTT_TESTS_ORIGIN_MATRIX_H_
