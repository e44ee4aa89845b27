// Matrices of float32, and the arithmetic of a transformer on them, forward and backward.
//
// Each function does its sums in one order, so that equal inputs give equal bits.

#ifndef OTT_EXAMPLES_TRANSFORMER_MATRIX_H_
#define OTT_EXAMPLES_TRANSFORMER_MATRIX_H_

#include <cstdint>
#include <vector>

#include "ott/tensor.h"

namespace ott::examples {

// Row-major.
struct Matrix {
  Matrix() = default;
  Matrix(int64_t num_rows, int64_t num_columns)
      : rows(num_rows), columns(num_columns), data(num_rows * num_columns) {}

  float* row(int64_t i) { return data.data() + i * columns; }
  const float* row(int64_t i) const { return data.data() + i * columns; }
  TensorView view() const { return TensorView(data.data(), {rows, columns}); }

  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> data;
};

// x + y, element by element.
void Add(const Matrix& y, Matrix* x);

// x w
Matrix MatMul(const Matrix& x, const Matrix& w);

// Returns the gradients of x w, given that of the result: for x, and added to that of w.
Matrix MatMulBackward(const Matrix& x, const Matrix& w, const Matrix& gradient, Matrix* w_gradient);

// bias [1, columns] is added to each row; the gradient of that is added to bias_gradient.
void AddBias(const Matrix& bias, Matrix* x);
void AddBiasBackward(const Matrix& gradient, Matrix* bias_gradient);

// Each row less its mean, divided by its standard deviation (Ba et al. 2016), times gain, plus bias
// [1, columns].
struct LayerNorm {
  Matrix Forward(const Matrix& x, const Matrix& gain, const Matrix& bias);
  // REQUIRES: after Forward()
  Matrix Backward(const Matrix& gradient, const Matrix& gain, Matrix* gain_gradient,
                  Matrix* bias_gradient) const;

  Matrix normalized;
  std::vector<float> inverse_deviation;  // by row
};

// x Φ(x), by its approximation with tanh (Hendrycks and Gimpel 2016).
Matrix Gelu(const Matrix& x);
Matrix GeluBackward(const Matrix& x, const Matrix& gradient);

// Causal attention of some heads. qkv [sequences * context, 3 * heads * width]: queries of all heads, then
// keys, then values.
struct Attention {
  // A position sees so many positions further than its own: 0, unless something is wrong.
  int look_ahead = 0;

  // [sequences * context, heads * width]
  Matrix Forward(const Matrix& qkv, int64_t context, int64_t heads);
  // Returns the gradient of qkv. REQUIRES: after Forward(qkv)
  Matrix Backward(const Matrix& qkv, const Matrix& gradient, int64_t context, int64_t heads) const;

  Matrix probabilities;  // [sequences * heads * context, context]
};

// The mean of -log softmax(logits)[target] over all rows, and its gradient.
struct CrossEntropy {
  float Forward(const Matrix& logits, const std::vector<int32_t>& targets);
  Matrix Backward(const std::vector<int32_t>& targets) const;

  Matrix probabilities;
};

// The nearest numbers that bfloat16 has, ties to even.
void RoundToBFloat16(Matrix* x);

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRANSFORMER_MATRIX_H_
