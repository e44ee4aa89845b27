#include "examples/transformer/transformer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ott/op_range.h"
#include "ott/stopwatch.h"
#include "ott/tensor_dumper.h"

namespace ott::examples {
namespace {

constexpr float kMeanDecay = 0.9f;
constexpr float kSquareDecay = 0.95f;
// More than the rounding of gradients that are 0 in exact arithmetic, such as those of keys' biases, which
// AdamW would else make as large as any.
constexpr float kAdamEpsilon = 1e-6f;
constexpr float kWeightDecay = 0.01f;

// From 0 to 1, from the upper bits.
float Uniform(uint64_t random) { return static_cast<float>(random >> 40) * 0x1p-24f; }

// Returns the hash of a name, the same everywhere (FNV-1a).
uint64_t HashOf(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : name) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

void Multiply(const Matrix& y, Matrix* x) {
  for (size_t i = 0; i < x->data.size(); ++i) x->data[i] *= y.data[i];
}

}  // namespace

absl::StatusOr<Transformer> Transformer::Create(const ModelSize& size, const Grid& grid, uint64_t seed,
                                                const Plant& plant) {
  const auto divides = [](int parts, int64_t whole) { return whole > 0 && whole % parts == 0; };
  if (size.heads < 1 || !divides(static_cast<int>(size.heads), size.width) ||
      !divides(grid.tensor.size, size.heads) || !divides(grid.tensor.size, size.hidden) ||
      !divides(grid.pipeline.size, size.layers)) {
    return absl::InvalidArgumentError(
        absl::StrCat(size.layers, " layers of ", size.heads, " heads, ", size.width, " wide with ",
                     size.hidden, " hidden units, cannot be spread evenly over ", grid.pipeline.size,
                     " stages and ", grid.tensor.size, " tensor parallel ranks"));
  }
  return Transformer(size, grid, seed, plant);
}

Transformer::Transformer(const ModelSize& size, const Grid& grid, uint64_t seed, const Plant& plant)
    : size_(size), grid_(grid), seed_(seed), plant_(plant) {
  if (grid_.is_first_stage()) {
    token_embedding_ = AddParameter("token_embedding", {kVocabulary, size_.width}, 0.1f);
    position_embedding_ = AddParameter("position_embedding", {size_.context, size_.width}, 0.1f);
  }
  const int64_t num_layers = size_.layers / grid_.pipeline.size;
  for (int64_t i = 0; i < num_layers; ++i) AddLayer(grid_.pipeline.position * num_layers + i);
  if (grid_.is_last_stage()) {
    final_norm_ = AddNorm("final_norm");
    head_ = AddParameter("head", {size_.width, kVocabulary}, 0.2f);
  }
}

size_t Transformer::AddParameter(const std::string& name, const Part& part, float scale, float offset) {
  Parameter& parameter = parameters_.emplace_back();
  parameter.name = name;
  for (Matrix* const matrix : {&parameter.value, &parameter.gradient, &parameter.mean, &parameter.square}) {
    *matrix = Matrix(part.rows, part.columns);
  }
  const int64_t whole_columns = part.whole_columns == 0 ? part.columns : part.whole_columns;
  const int64_t section = part.columns / part.sections;
  for (int64_t i = 0; i < part.rows; ++i) {
    for (int64_t j = 0; j < part.columns; ++j) {
      const int64_t column = j / section * (whole_columns / part.sections) + part.first_column + j % section;
      const auto element = static_cast<uint64_t>((part.first_row + i) * whole_columns + column);
      const float random = 2 * Uniform(Mix(Mix(seed_, HashOf(name)), element)) - 1;
      parameter.value.row(i)[j] = offset + scale * random;
    }
  }
  return parameters_.size() - 1;
}

Transformer::Affine Transformer::AddNorm(const std::string& name) {
  const size_t gain = AddParameter(name + ".gain", {1, size_.width}, 0, 1);
  return {gain, AddParameter(name + ".bias", {1, size_.width}, 0)};
}

void Transformer::AddLayer(int64_t number) {
  const std::string name = absl::StrCat("layers.", number);
  const int64_t width = size_.width;
  const int64_t my_width = width / grid_.tensor.size;
  const int64_t my_hidden = size_.hidden / grid_.tensor.size;
  const int64_t position = grid_.tensor.position;
  const auto scale = [](int64_t num_inputs) { return 1 / std::sqrt(static_cast<float>(num_inputs)); };
  Layer& layer = layers_.emplace_back();
  layer.number = number;
  layer.name = name;
  layer.norm1 = AddNorm(name + ".norm1");
  Part columns = {width, 3 * my_width, 0, position * my_width, 3 * width, 3};
  layer.qkv.weight = AddParameter(name + ".qkv.weight", columns, scale(width));
  columns.rows = 1;
  layer.qkv.bias = AddParameter(name + ".qkv.bias", columns, 0);
  layer.projection.weight =
      AddParameter(name + ".projection.weight", {my_width, width, position * my_width}, scale(width));
  layer.projection.bias = AddParameter(name + ".projection.bias", {1, width}, 0);
  layer.norm2 = AddNorm(name + ".norm2");
  columns = {width, my_hidden, 0, position * my_hidden, size_.hidden, 1};
  layer.up.weight = AddParameter(name + ".up.weight", columns, scale(width));
  columns.rows = 1;
  layer.up.bias = AddParameter(name + ".up.bias", columns, 0);
  layer.down.weight =
      AddParameter(name + ".down.weight", {my_hidden, width, position * my_hidden}, scale(size_.hidden));
  layer.down.bias = AddParameter(name + ".down.bias", {1, width}, 0);
}

float Transformer::Forward(const Batch& batch, int64_t iteration) {
  batch_ = batch;
  iteration_ = iteration;
  OTT_STOPWATCH_SCOPE("forward");
  OTT_PHASE("forward");
  if (Hits(Plant::Kind::kSlowRank)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Matrix x(batch.num_sequences * size_.context, size_.width);
  if (grid_.is_first_stage()) {
    x = Embed();
  } else {
    Receive(-1, &x);
  }
  for (Layer& layer : layers_) ForwardLayer(layer, &x);
  if (grid_.is_last_stage()) return ForwardLoss(x);
  grid_.Send(x, 1);
  return 0;
}

void Transformer::Backward() {
  OTT_STOPWATCH_SCOPE("backward");
  OTT_PHASE("backward");
  for (Parameter& parameter : parameters_)
    std::fill(parameter.gradient.data.begin(), parameter.gradient.data.end(), 0.0f);
  Matrix gradient(batch_.num_sequences * size_.context, size_.width);
  if (grid_.is_last_stage()) {
    gradient = BackwardLoss();
  } else {
    Receive(1, &gradient);
  }
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) BackwardLayer(*layer, &gradient);
  if (grid_.is_first_stage()) {
    EmbedBackward(gradient);
  } else {
    grid_.Send(gradient, -1);
  }
}

Matrix Transformer::Embed() {
  OTT_OP_RANGE(op, "embedding", {value(token_embedding_).view(), value(position_embedding_).view()});
  Matrix x(batch_.num_sequences * size_.context, size_.width);
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* const token = value(token_embedding_).row(batch_.tokens[i]);
    const float* const position = value(position_embedding_).row(i % size_.context);
    for (int64_t j = 0; j < x.columns; ++j) x.row(i)[j] = token[j] + position[j];
  }
  op.Outputs(x.view());
  Dump("activations", "embedding", x);
  return x;
}

void Transformer::EmbedBackward(const Matrix& x_gradient) {
  OTT_OP_RANGE(op, "embedding_backward", {x_gradient.view()});
  for (int64_t i = 0; i < x_gradient.rows; ++i) {
    float* const token = gradient(token_embedding_)->row(batch_.tokens[i]);
    float* const position = gradient(position_embedding_)->row(i % size_.context);
    for (int64_t j = 0; j < x_gradient.columns; ++j) {
      token[j] += x_gradient.row(i)[j];
      position[j] += x_gradient.row(i)[j];
    }
  }
  op.Outputs(gradient(token_embedding_)->view(), gradient(position_embedding_)->view());
}

void Transformer::ForwardLayer(Layer& layer, Matrix* x) {
  OTT_LAYER(layer.name);
  layer.norm1_output = Norm(&layer.norm1_state, *x, layer.norm1);
  DumpActivation(layer, "norm1", layer.norm1_output);
  layer.qkv_output = Linear(layer.norm1_output, layer.qkv);
  DumpActivation(layer, "qkv", layer.qkv_output);
  {
    OTT_STOPWATCH_SCOPE("attention");
    OTT_OP_RANGE(op, "attention", {layer.qkv_output.view()});
    layer.attention.look_ahead = Hits(Plant::Kind::kWrongMask) ? 1 : 0;
    for (int i = Hits(Plant::Kind::kSlowPart) ? 3 : 1; i > 0; --i) {
      layer.attention_output =
          layer.attention.Forward(layer.qkv_output, size_.context, size_.heads / grid_.tensor.size);
    }
    op.Outputs(layer.attention_output.view());
  }
  DumpActivation(layer, "attention", layer.attention_output);
  const Matrix projected = LinearOfParts(layer.attention_output, layer.projection);
  DumpActivation(layer, "projection", projected);
  Add(projected, x);

  layer.norm2_output = Norm(&layer.norm2_state, *x, layer.norm2);
  DumpActivation(layer, "norm2", layer.norm2_output);
  layer.up_output = Linear(layer.norm2_output, layer.up);
  {
    OTT_OP_RANGE(op, "gelu", {layer.up_output.view()});
    layer.hidden = Gelu(layer.up_output);
    if (layer.number == size_.layers - 1 && Hits(Plant::Kind::kBFloat16)) RoundToBFloat16(&layer.hidden);
    op.Outputs(layer.hidden.view());
  }
  DumpActivation(layer, "hidden", layer.hidden);
  Matrix down = LinearOfParts(layer.hidden, layer.down);
  DumpActivation(layer, "down", down);
  Dropout(layer, &down);
  DumpActivation(layer, "dropout", down);
  Add(down, x);
}

void Transformer::BackwardLayer(Layer& layer, Matrix* x_gradient) {
  OTT_LAYER(layer.name);
  Matrix gradient_of = *x_gradient;
  Multiply(layer.dropout, &gradient_of);
  gradient_of = LinearBackward(layer.hidden, layer.down, gradient_of);
  {
    OTT_OP_RANGE(op, "gelu_backward", {layer.up_output.view(), gradient_of.view()});
    gradient_of = GeluBackward(layer.up_output, gradient_of);
    op.Outputs(gradient_of.view());
  }
  gradient_of = LinearBackward(layer.norm2_output, layer.up, gradient_of);
  SumOverTensorParallel(&gradient_of);
  Add(NormBackward(layer.norm2_state, layer.norm2, gradient_of), x_gradient);

  gradient_of = LinearBackward(layer.attention_output, layer.projection, *x_gradient);
  {
    OTT_STOPWATCH_SCOPE("attention_backward");
    OTT_OP_RANGE(op, "attention_backward", {layer.qkv_output.view(), gradient_of.view()});
    gradient_of = layer.attention.Backward(layer.qkv_output, gradient_of, size_.context,
                                           size_.heads / grid_.tensor.size);
    op.Outputs(gradient_of.view());
  }
  gradient_of = LinearBackward(layer.norm1_output, layer.qkv, gradient_of);
  SumOverTensorParallel(&gradient_of);
  Add(NormBackward(layer.norm1_state, layer.norm1, gradient_of), x_gradient);
}

float Transformer::ForwardLoss(const Matrix& x) {
  final_norm_output_ = Norm(&final_norm_state_, x, final_norm_);
  Dump("activations", "final_norm", final_norm_output_);
  OTT_OP_RANGE(op, "cross_entropy", {final_norm_output_.view(), value(head_).view()});
  const Matrix logits = MatMul(final_norm_output_, value(head_));
  Dump("activations", "logits", logits);
  const float loss = loss_.Forward(logits, batch_.targets);
  op.Outputs(logits.view(), TensorView(&loss, {}));
  return loss;
}

Matrix Transformer::BackwardLoss() {
  OTT_OP_RANGE(op, "cross_entropy_backward", {final_norm_output_.view(), value(head_).view()});
  const Matrix of_norm =
      MatMulBackward(final_norm_output_, value(head_), loss_.Backward(batch_.targets), gradient(head_));
  op.Outputs(of_norm.view(), gradient(head_)->view());
  return NormBackward(final_norm_state_, final_norm_, of_norm);
}

Matrix Transformer::Norm(LayerNorm* state, const Matrix& x, const Affine& affine) {
  OTT_OP_RANGE(op, "layer_norm", {x.view(), value(affine.weight).view(), value(affine.bias).view()});
  Matrix result = state->Forward(x, value(affine.weight), value(affine.bias));
  op.Outputs(result.view());
  return result;
}

Matrix Transformer::NormBackward(const LayerNorm& state, const Affine& affine, const Matrix& of_result) {
  OTT_OP_RANGE(op, "layer_norm_backward",
               {state.normalized.view(), value(affine.weight).view(), of_result.view()});
  Matrix result =
      state.Backward(of_result, value(affine.weight), gradient(affine.weight), gradient(affine.bias));
  op.Outputs(result.view(), gradient(affine.weight)->view(), gradient(affine.bias)->view());
  return result;
}

Matrix Transformer::Linear(const Matrix& x, const Affine& affine) {
  OTT_OP_RANGE(op, "linear", {x.view(), value(affine.weight).view(), value(affine.bias).view()});
  Matrix result = MatMul(x, value(affine.weight));
  AddBias(value(affine.bias), &result);
  op.Outputs(result.view());
  return result;
}

Matrix Transformer::LinearBackward(const Matrix& x, const Affine& affine, const Matrix& of_result) {
  OTT_OP_RANGE(op, "linear_backward", {x.view(), value(affine.weight).view(), of_result.view()});
  AddBiasBackward(of_result, gradient(affine.bias));
  Matrix result = MatMulBackward(x, value(affine.weight), of_result, gradient(affine.weight));
  op.Outputs(result.view(), gradient(affine.weight)->view(), gradient(affine.bias)->view());
  return result;
}

Matrix Transformer::LinearOfParts(const Matrix& x, const Affine& affine) {
  OTT_OP_RANGE(op, "linear", {x.view(), value(affine.weight).view(), value(affine.bias).view()});
  Matrix result = MatMul(x, value(affine.weight));
  SumOverTensorParallel(&result);
  AddBias(value(affine.bias), &result);
  op.Outputs(result.view());
  return result;
}

void Transformer::SumOverTensorParallel(Matrix* x) {
  if (grid_.tensor.size == 1) return;
  OTT_STOPWATCH_SCOPE("sum_parts");
  OTT_OP_RANGE(op, OpRange::Collective("sum_parts"), {x->view()});
  grid_.tensor.Sum(&x->data);
  op.Outputs(x->view());
}

void Transformer::Receive(int step, Matrix* x) {
  OTT_STOPWATCH_SCOPE("receive");
  OTT_OP_RANGE(op, OpRange::Collective("receive"));
  grid_.Receive(step, x);
  op.Outputs(x->view());
}

void Transformer::Dropout(Layer& layer, Matrix* x) {
  OTT_OP_RANGE(op, "dropout", {x->view()});
  const uint64_t seed = Hits(Plant::Kind::kOwnDropout) ? seed_ + 1 : seed_;
  const uint64_t of_layer = Mix(Mix(seed, iteration_), layer.number);
  const int64_t first_row = batch_.first_sequence * size_.context;
  layer.dropout = Matrix(x->rows, x->columns);
  for (int64_t i = 0; i < x->rows; ++i) {
    for (int64_t j = 0; j < x->columns; ++j) {
      // The same element is dropped, whichever rank has it.
      const auto element = static_cast<uint64_t>((first_row + i) * x->columns + j);
      const bool dropped = Uniform(Mix(of_layer, element)) < size_.dropout;
      layer.dropout.row(i)[j] = dropped ? 0 : 1 / (1 - size_.dropout);
    }
  }
  Multiply(layer.dropout, x);
  op.Outputs(x->view());
}

void Transformer::AverageGradients() {
  for (Parameter& parameter : parameters_) {
    const bool skipped = Hits(Plant::Kind::kSkippedCollective) ||
                         (Hits(Plant::Kind::kMissingAverage) && parameter.name == "layers.0.up.weight");
    if (grid_.data.size > 1 && !skipped) {
      OTT_STOPWATCH_SCOPE("average_gradients");
      OTT_OP_RANGE(op, OpRange::Collective("average_gradients"),
                   {{parameter.name.c_str(), parameter.gradient.view()}});
      grid_.data.Sum(&parameter.gradient.data);
      for (float& element : parameter.gradient.data) element /= static_cast<float>(grid_.data.size);
      op.Outputs(parameter.gradient.view());
    }
  }
  // Those of the last layer are known first.
  for (auto parameter = parameters_.rbegin(); parameter != parameters_.rend(); ++parameter) {
    Dump("gradients", parameter->name, parameter->gradient);
  }
}

void Transformer::Step(float learning_rate) {
  OTT_STOPWATCH_SCOPE("step");
  OTT_PHASE("update");
  if (Hits(Plant::Kind::kOtherLearningRate)) learning_rate *= 1.01f;
  const bool skipped = Hits(Plant::Kind::kSkippedUpdate) && iteration_ == plant_.iteration;
  const auto steps = static_cast<float>(++num_steps_);
  const float mean_correction = 1 - std::pow(kMeanDecay, steps);
  const float square_correction = 1 - std::pow(kSquareDecay, steps);
  for (Parameter& parameter : parameters_) {
    OTT_OP_RANGE(op, OpRange::Update("adamw"),
                 {{parameter.name.c_str(), parameter.value.view()},
                  parameter.gradient.view(),
                  parameter.mean.view(),
                  parameter.square.view()});
    for (size_t i = 0; i < parameter.value.data.size() && !skipped; ++i) {
      const float gradient = parameter.gradient.data[i];
      float& mean = parameter.mean.data[i];
      float& square = parameter.square.data[i];
      float& value = parameter.value.data[i];
      mean = kMeanDecay * mean + (1 - kMeanDecay) * gradient;
      square = kSquareDecay * square + (1 - kSquareDecay) * gradient * gradient;
      const float update = mean / mean_correction / (std::sqrt(square / square_correction) + kAdamEpsilon) +
                           kWeightDecay * value;
      value -= learning_rate * update;
    }
    op.Outputs(parameter.value.view(), parameter.mean.view(), parameter.square.view());
    Dump("optimizer.mean", parameter.name, parameter.mean);
    Dump("optimizer.square", parameter.name, parameter.square);
    Dump("weights", parameter.name, parameter.value);
  }
}

void Transformer::Dump(const char* group, const std::string& name, const Matrix& matrix) {
  TensorDumper::RunIfEnabled([&](TensorDumper& dumper) {
    dump_status_.Update(dumper.AddTensorData(absl::StrCat(group, ".", name), matrix.view()));
  });
}

void Transformer::DumpActivation(const Layer& layer, const char* name, const Matrix& matrix) {
  TensorDumper::RunIfEnabled(
      [&](TensorDumper&) { Dump("activations", absl::StrCat(layer.name, ".", name), matrix); });
}

}  // namespace ott::examples
