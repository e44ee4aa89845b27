#include "examples/transformer/matrix.h"

#include <algorithm>
#include <cmath>

#include "ott/core/tensor/element.h"

namespace ott::examples {
namespace {

constexpr float kEpsilon = 1e-5f;
// sqrt(2 / π), and the weight of the cube.
constexpr float kGeluScale = 0.7978845608f;
constexpr float kGeluCube = 0.044715f;

Matrix Transposed(const Matrix& x) {
  Matrix result(x.columns, x.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) result.row(j)[i] = x.row(i)[j];
  }
  return result;
}

float Dot(const float* a, const float* b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// y += scale * x
void AddScaled(float scale, const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] += scale * x[i];
}

// exp(x - largest) / their sum, over the first `count` numbers; the others become 0.
void Softmax(float* x, int64_t count, int64_t size) {
  const float largest = *std::max_element(x, x + count);
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i] = std::exp(x[i] - largest);
  for (int64_t i = 0; i < count; ++i) x[i] /= sum;
  std::fill(x + count, x + size, 0.0f);
}

// The parts of attention's inputs and outputs that belong to one head of one sequence.
struct Head {
  Head(int64_t index, int64_t context, int64_t heads, int64_t columns)
      : first_row(index / heads * context),
        width(columns / (3 * heads)),
        query(index % heads * width),
        key(query + heads * width),
        value(key + heads * width),
        first_probability(index * context) {}

  int64_t first_row;
  int64_t width;
  int64_t query, key, value;  // columns of qkv; the first is also the output's
  int64_t first_probability;  // row of the probabilities
};

}  // namespace

void Add(const Matrix& y, Matrix* x) {
  AddScaled(1, y.data.data(), static_cast<int64_t>(y.data.size()), x->data.data());
}

Matrix MatMul(const Matrix& x, const Matrix& w) {
  Matrix result(x.rows, w.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t k = 0; k < x.columns; ++k) AddScaled(x.row(i)[k], w.row(k), w.columns, result.row(i));
  }
  return result;
}

Matrix MatMulBackward(const Matrix& x, const Matrix& w, const Matrix& gradient, Matrix* w_gradient) {
  Add(MatMul(Transposed(x), gradient), w_gradient);
  return MatMul(gradient, Transposed(w));
}

void AddBias(const Matrix& bias, Matrix* x) {
  for (int64_t i = 0; i < x->rows; ++i) AddScaled(1, bias.row(0), x->columns, x->row(i));
}

void AddBiasBackward(const Matrix& gradient, Matrix* bias_gradient) {
  for (int64_t i = 0; i < gradient.rows; ++i) {
    AddScaled(1, gradient.row(i), gradient.columns, bias_gradient->row(0));
  }
}

Matrix LayerNorm::Forward(const Matrix& x, const Matrix& gain, const Matrix& bias) {
  normalized = Matrix(x.rows, x.columns);
  inverse_deviation.resize(x.rows);
  Matrix result(x.rows, x.columns);
  const auto count = static_cast<float>(x.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    float mean = 0;
    for (int64_t j = 0; j < x.columns; ++j) mean += x.row(i)[j] / count;
    float variance = 0;
    for (int64_t j = 0; j < x.columns; ++j) {
      const float deviation = x.row(i)[j] - mean;
      variance += deviation * deviation / count;
    }
    inverse_deviation[i] = 1 / std::sqrt(variance + kEpsilon);
    for (int64_t j = 0; j < x.columns; ++j) {
      normalized.row(i)[j] = (x.row(i)[j] - mean) * inverse_deviation[i];
      result.row(i)[j] = normalized.row(i)[j] * gain.row(0)[j] + bias.row(0)[j];
    }
  }
  return result;
}

Matrix LayerNorm::Backward(const Matrix& gradient, const Matrix& gain, Matrix* gain_gradient,
                           Matrix* bias_gradient) const {
  AddBiasBackward(gradient, bias_gradient);
  Matrix result(gradient.rows, gradient.columns);
  const auto count = static_cast<float>(gradient.columns);
  for (int64_t i = 0; i < gradient.rows; ++i) {
    float mean = 0;         // of the normalized values' gradient
    float correlation = 0;  // of that and the normalized values
    for (int64_t j = 0; j < gradient.columns; ++j) {
      const float of_normalized = gradient.row(i)[j] * gain.row(0)[j];
      gain_gradient->row(0)[j] += gradient.row(i)[j] * normalized.row(i)[j];
      mean += of_normalized / count;
      correlation += of_normalized * normalized.row(i)[j] / count;
    }
    for (int64_t j = 0; j < gradient.columns; ++j) {
      const float of_normalized = gradient.row(i)[j] * gain.row(0)[j];
      result.row(i)[j] = (of_normalized - mean - normalized.row(i)[j] * correlation) * inverse_deviation[i];
    }
  }
  return result;
}

Matrix Gelu(const Matrix& x) {
  Matrix result(x.rows, x.columns);
  for (size_t i = 0; i < x.data.size(); ++i) {
    const float v = x.data[i];
    result.data[i] = 0.5f * v * (1 + std::tanh(kGeluScale * (v + kGeluCube * v * v * v)));
  }
  return result;
}

Matrix GeluBackward(const Matrix& x, const Matrix& gradient) {
  Matrix result(x.rows, x.columns);
  for (size_t i = 0; i < x.data.size(); ++i) {
    const float v = x.data[i];
    const float t = std::tanh(kGeluScale * (v + kGeluCube * v * v * v));
    const float slope = kGeluScale * (1 + 3 * kGeluCube * v * v);
    result.data[i] = gradient.data[i] * 0.5f * (1 + t + v * (1 - t * t) * slope);
  }
  return result;
}

Matrix Attention::Forward(const Matrix& qkv, int64_t context, int64_t heads) {
  const int64_t sequences = qkv.rows / context;
  probabilities = Matrix(sequences * heads * context, context);
  Matrix result(qkv.rows, qkv.columns / 3);
  for (int64_t index = 0; index < sequences * heads; ++index) {
    const Head head(index, context, heads, qkv.columns);
    const float scale = 1 / std::sqrt(static_cast<float>(head.width));
    for (int64_t i = 0; i < context; ++i) {
      float* const row = probabilities.row(head.first_probability + i);
      const int64_t num_seen = std::min(i + 1 + look_ahead, context);
      for (int64_t j = 0; j < num_seen; ++j) {
        row[j] = scale * Dot(qkv.row(head.first_row + i) + head.query, qkv.row(head.first_row + j) + head.key,
                             head.width);
      }
      Softmax(row, num_seen, context);
      for (int64_t j = 0; j < num_seen; ++j) {
        AddScaled(row[j], qkv.row(head.first_row + j) + head.value, head.width,
                  result.row(head.first_row + i) + head.query);
      }
    }
  }
  return result;
}

Matrix Attention::Backward(const Matrix& qkv, const Matrix& gradient, int64_t context, int64_t heads) const {
  Matrix result(qkv.rows, qkv.columns);
  std::vector<float> of_probabilities(context);
  for (int64_t index = 0; index < qkv.rows / context * heads; ++index) {
    const Head head(index, context, heads, qkv.columns);
    const float scale = 1 / std::sqrt(static_cast<float>(head.width));
    for (int64_t i = 0; i < context; ++i) {
      const float* const row = probabilities.row(head.first_probability + i);
      const float* const of_output = gradient.row(head.first_row + i) + head.query;
      float mean = 0;  // by the probabilities
      for (int64_t j = 0; j < context; ++j) {
        const int64_t at = head.first_row + j;
        of_probabilities[j] = Dot(of_output, qkv.row(at) + head.value, head.width);
        mean += row[j] * of_probabilities[j];
        AddScaled(row[j], of_output, head.width, result.row(at) + head.value);
      }
      for (int64_t j = 0; j < context; ++j) {
        const int64_t at = head.first_row + j;
        const float of_score = scale * row[j] * (of_probabilities[j] - mean);
        AddScaled(of_score, qkv.row(at) + head.key, head.width, result.row(head.first_row + i) + head.query);
        AddScaled(of_score, qkv.row(head.first_row + i) + head.query, head.width, result.row(at) + head.key);
      }
    }
  }
  return result;
}

float CrossEntropy::Forward(const Matrix& logits, const std::vector<int32_t>& targets) {
  probabilities = logits;
  double loss = 0;
  for (int64_t i = 0; i < logits.rows; ++i) {
    Softmax(probabilities.row(i), logits.columns, logits.columns);
    loss -= std::log(static_cast<double>(probabilities.row(i)[targets[i]]));
  }
  return static_cast<float>(loss / static_cast<double>(logits.rows));
}

Matrix CrossEntropy::Backward(const std::vector<int32_t>& targets) const {
  Matrix result = probabilities;
  for (int64_t i = 0; i < result.rows; ++i) result.row(i)[targets[i]] -= 1;
  for (float& element : result.data) element /= static_cast<float>(result.rows);
  return result;
}

void RoundToBFloat16(Matrix* x) {
  for (float& element : x->data) element = FromDouble<BFloat16>(element);
}

}  // namespace ott::examples
