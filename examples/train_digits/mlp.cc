#include "examples/train_digits/mlp.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "ott/op_range.h"
#include "ott/tensor.h"

namespace ott::examples {
namespace {

// A matrix in memory that somebody else owns; element [row, column] is data[row * row_stride + column *
// column_stride].
struct Matrix {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;
};

Matrix RowMajor(const std::vector<float>& data, int64_t columns) { return {data.data(), columns, 1}; }
Matrix Transposed(const Matrix& m) { return {m.data, m.column_stride, m.row_stride}; }

// Adds up in the order of the elements.
float DotReference(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t size) {
  float sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += a[i * a_stride] * b[i * b_stride];
  return sum;
}

// Adds up in lanes, for which there are vector instructions.
float DotOptimized(const float* a, const float* b, int64_t size) {
  constexpr int kLanes = 8;
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  float sum = DotReference(a + i, 1, b + i, 1, size - i);
  for (const float lane : lanes) sum += lane;
  return sum;
}

// The rows of m without gaps: where they are already, or in copy.
const float* Packed(const Matrix& m, int64_t rows, int64_t columns, std::vector<float>* copy) {
  if (m.column_stride == 1 && m.row_stride == columns) return m.data;
  copy->resize(rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      (*copy)[row * columns + column] = m.data[row * m.row_stride + column * m.column_stride];
    }
  }
  return copy->data();
}

void ProductReference(const Matrix& a, const Matrix& b, int64_t rows, int64_t columns, int64_t depth,
                      float* out) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      out[row * columns + column] = DotReference(a.data + row * a.row_stride, a.column_stride,
                                                 b.data + column * b.row_stride, b.column_stride, depth);
    }
  }
}

void ProductOptimized(const Matrix& a, const Matrix& b, int64_t rows, int64_t columns, int64_t depth,
                      float* out) {
  std::vector<float> a_copy;
  std::vector<float> b_copy;
  const float* const a_rows = Packed(a, rows, depth, &a_copy);
  const float* const b_rows = Packed(b, columns, depth, &b_copy);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      out[row * columns + column] = DotOptimized(a_rows + row * depth, b_rows + column * depth, depth);
    }
  }
}

// out = a bᵀ; a is [rows, depth], b is [columns, depth], out is row-major [rows, columns].
void Product(Kernel kernel, const Matrix& a, const Matrix& b, int64_t rows, int64_t columns, int64_t depth,
             float* out) {
  const auto product = kernel == Kernel::kReference ? ProductReference : ProductOptimized;
  product(a, b, rows, columns, depth, out);
}

void AddBias(const std::vector<float>& bias, std::vector<float>* rows) {
  for (size_t i = 0; i < rows->size(); ++i) (*rows)[i] += bias[i % bias.size()];
}

// out[column] = sum over rows.
void SumRows(const std::vector<float>& rows, std::vector<float>* out) {
  std::fill(out->begin(), out->end(), 0.0f);
  for (size_t i = 0; i < rows.size(); ++i) (*out)[i % out->size()] += rows[i];
}

TensorView Rows(const std::vector<float>& data, int64_t columns) {
  return TensorView(data.data(), {static_cast<int64_t>(data.size()) / columns, columns});
}
TensorView Labels(const Digits& batch) {
  return TensorView(batch.labels.data(), {static_cast<int64_t>(batch.labels.size())});
}
TensorView Value(const Parameter& parameter) { return {parameter.value.data(), parameter.shape}; }
TensorView Gradient(const Parameter& parameter) { return {parameter.gradient.data(), parameter.shape}; }

void SoftmaxRow(float* row) {
  const float max = *std::max_element(row, row + kClasses);
  float sum = 0;
  for (int i = 0; i < kClasses; ++i) sum += row[i] = std::exp(row[i] - max);
  for (int i = 0; i < kClasses; ++i) row[i] /= sum;
}

Parameter MakeParameter(std::string name, std::vector<int64_t> shape, float deviation,
                        std::mt19937_64* random) {
  int64_t size = 1;
  for (const int64_t dim : shape) size *= dim;
  Parameter parameter{std::move(name), std::move(shape), std::vector<float>(size), std::vector<float>(size),
                      std::vector<float>(size)};
  if (deviation > 0) {
    std::normal_distribution<float> normal(0, deviation);
    for (float& value : parameter.value) value = normal(*random);
  }
  return parameter;
}

}  // namespace

Mlp::Mlp(int hidden, uint64_t seed, Kernel kernel) : hidden_size_(hidden), kernel_(kernel) {
  std::mt19937_64 random(seed);
  parameters_.push_back(MakeParameter("w1", {hidden, kPixels}, std::sqrt(2.0f / kPixels), &random));
  parameters_.push_back(MakeParameter("b1", {hidden}, 0, &random));
  parameters_.push_back(MakeParameter("w2", {kClasses, hidden}, std::sqrt(2.0f / hidden), &random));
  parameters_.push_back(MakeParameter("b2", {kClasses}, 0, &random));
}

void Mlp::Linear(const char* layer, const std::vector<float>& in, int64_t depth, const Parameter& weight,
                 const Parameter& bias, std::vector<float>* out) {
  OTT_LAYER(layer);
  OTT_OP_RANGE(op, "linear", {{"input", Rows(in, depth)}, {"weight", Value(weight)}, {"bias", Value(bias)}});
  const auto count = static_cast<int64_t>(in.size()) / depth;
  const int64_t columns = weight.shape[0];
  out->resize(count * columns);
  Product(kernel_, RowMajor(in, depth), RowMajor(weight.value, depth), count, columns, depth, out->data());
  AddBias(bias.value, out);
  if (op.wants_outputs()) op.Outputs(Rows(*out, columns));
}

double Mlp::Forward(const Digits& batch) {
  OTT_PHASE("forward");
  const int64_t count = batch.count();
  Linear("hidden", batch.images, kPixels, w1(), b1(), &hidden_);
  {
    OTT_LAYER("hidden");
    OTT_OP_RANGE(op, "relu", {Rows(hidden_, hidden_size_)});
    for (float& value : hidden_) value = std::max(value, 0.0f);
    if (op.wants_outputs()) op.Outputs(Rows(hidden_, hidden_size_));
  }
  Linear("output", hidden_, hidden_size_, w2(), b2(), &probabilities_);
  OTT_OP_RANGE(op, "softmax_cross_entropy",
               {{"logits", Rows(probabilities_, kClasses)}, {"labels", Labels(batch)}});
  double loss = 0;
  for (int64_t i = 0; i < count; ++i) {
    SoftmaxRow(&probabilities_[i * kClasses]);
    loss -= std::log(std::max(probabilities_[i * kClasses + batch.labels[i]], 1e-30f));
  }
  if (op.wants_outputs()) {
    op.Outputs({{"probabilities", Rows(probabilities_, kClasses)}, {"loss", TensorView(&loss, {})}});
  }
  return loss;
}

void Mlp::Backward(const Digits& batch) {
  OTT_PHASE("backward");
  const int64_t count = batch.count();
  std::vector<float> output_gradient = probabilities_;
  {
    OTT_OP_RANGE(op, OpRange::Backward("SoftmaxCrossEntropyBackward", {}),
                 {{"probabilities", Rows(probabilities_, kClasses)}, {"labels", Labels(batch)}});
    for (int64_t i = 0; i < count; ++i) output_gradient[i * kClasses + batch.labels[i]] -= 1;
    if (op.wants_outputs()) op.Outputs(Rows(output_gradient, kClasses));
  }

  const Matrix d_output = RowMajor(output_gradient, kClasses);
  std::vector<float> hidden_gradient(count * hidden_size_);
  {
    OTT_LAYER("output");
    OTT_OP_RANGE(op, OpRange::Backward("LinearBackward", {}),
                 {{"gradient", Rows(output_gradient, kClasses)},
                  {"input", Rows(hidden_, hidden_size_)},
                  {"weight", Value(w2())}});
    Product(kernel_, Transposed(d_output), Transposed(RowMajor(hidden_, hidden_size_)), kClasses,
            hidden_size_, count, parameters_[2].gradient.data());
    SumRows(output_gradient, &parameters_[3].gradient);
    Product(kernel_, d_output, Transposed(RowMajor(w2().value, hidden_size_)), count, hidden_size_, kClasses,
            hidden_gradient.data());
    if (op.wants_outputs()) {
      op.Outputs({{"w2", Gradient(parameters_[2])},
                  {"b2", Gradient(parameters_[3])},
                  {"input", Rows(hidden_gradient, hidden_size_)}});
    }
  }
  {
    OTT_LAYER("hidden");
    OTT_OP_RANGE(op, OpRange::Backward("ReluBackward", {}),
                 {Rows(hidden_gradient, hidden_size_), Rows(hidden_, hidden_size_)});
    for (size_t i = 0; i < hidden_gradient.size(); ++i) {
      if (hidden_[i] == 0) hidden_gradient[i] = 0;
    }
    if (op.wants_outputs()) op.Outputs(Rows(hidden_gradient, hidden_size_));
  }
  OTT_LAYER("hidden");
  OTT_OP_RANGE(op, OpRange::Backward("LinearBackward", {}),
               {{"gradient", Rows(hidden_gradient, hidden_size_)}, {"input", Rows(batch.images, kPixels)}});
  Product(kernel_, Transposed(RowMajor(hidden_gradient, hidden_size_)),
          Transposed(RowMajor(batch.images, kPixels)), hidden_size_, kPixels, count,
          parameters_[0].gradient.data());
  SumRows(hidden_gradient, &parameters_[1].gradient);
  if (op.wants_outputs()) op.Outputs({{"w1", Gradient(parameters_[0])}, {"b1", Gradient(parameters_[1])}});
}

void Mlp::Step(float learning_rate, float momentum, float scale) {
  OTT_PHASE("update");
  for (Parameter& parameter : parameters_) {
    OTT_LAYER(parameter.name);
    const auto velocity = [&] { return TensorView(parameter.velocity.data(), parameter.shape); };
    OTT_OP_RANGE(op, OpRange::Update("sgd"),
                 {{"weight", Value(parameter)}, {"gradient", Gradient(parameter)}, {"velocity", velocity()}},
                 {{"learning_rate", learning_rate}, {"momentum", momentum}, {"scale", scale}});
    for (size_t i = 0; i < parameter.value.size(); ++i) {
      parameter.velocity[i] = momentum * parameter.velocity[i] + scale * parameter.gradient[i];
      parameter.value[i] -= learning_rate * parameter.velocity[i];
    }
    if (op.wants_outputs()) op.Outputs({{"weight", Value(parameter)}, {"velocity", velocity()}});
  }
}

double Mlp::Accuracy(const Digits& digits) {
  Forward(digits);
  int64_t correct = 0;
  for (int64_t i = 0; i < digits.count(); ++i) {
    const float* row = &probabilities_[i * kClasses];
    correct += std::max_element(row, row + kClasses) - row == digits.labels[i];
  }
  return static_cast<double>(correct) / static_cast<double>(digits.count());
}

}  // namespace ott::examples
