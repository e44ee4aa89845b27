// A small GPT-like transformer, written out by hand, data, tensor and pipeline parallel.
//
// Tensor parallel ranks hold some heads and some of the hidden units each, and sum their parts of each
// layer's two outputs (Shoeybi et al. 2019). Stages of the pipeline hold layers that follow each other. Data
// parallel ranks average their gradients.
//
// Measurements and dumped tensors are named in the order in which they happen, so that the first tensor that
// differs between two runs is the cause and not what follows from it.

#ifndef OTT_EXAMPLES_TRANSFORMER_TRANSFORMER_H_
#define OTT_EXAMPLES_TRANSFORMER_TRANSFORMER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/transformer/grid.h"
#include "examples/transformer/matrix.h"
#include "examples/transformer/plant.h"
#include "examples/transformer/text.h"

namespace ott::examples {

struct ModelSize {
  int64_t context = 16;
  int64_t width = 16;
  int64_t heads = 4;
  int64_t hidden = 64;
  int64_t layers = 2;
  float dropout = 0.1f;
};

// One rank's part of it.
struct Parameter {
  std::string name;  // "layers.0.qkv.weight"
  Matrix value;
  Matrix gradient;
  // Moving averages of the gradient and its square (AdamW, Loshchilov and Hutter 2019).
  Matrix mean;
  Matrix square;
};

class Transformer {
 public:
  // Equal seeds give equal weights, however they are spread over ranks. INVALID_ARGUMENT for sizes that
  // cannot be spread.
  static absl::StatusOr<Transformer> Create(const ModelSize& size, const Grid& grid, uint64_t seed,
                                            const Plant& plant);

  // Returns the mean loss over this rank's sequences, on the last stage of the pipeline; 0 on the others.
  // Keeps what Backward() needs. iteration: seeds the dropout.
  float Forward(const Batch& batch, int64_t iteration);

  // Sets the gradients of that loss.
  void Backward();

  // Over the data parallel ranks.
  void AverageGradients();

  // One step of AdamW.
  void Step(float learning_rate);

  // In the order in which the forward pass uses them.
  std::vector<Parameter>& parameters() { return parameters_; }

  // Returns the status of all that was dumped.
  const absl::Status& dump_status() const { return dump_status_; }

 private:
  // Places in parameters_.
  struct Affine {
    size_t weight, bias;
  };

  struct Layer {
    int64_t number = 0;
    std::string name;  // "layers.0"
    Affine norm1, qkv, projection, norm2, up, down;
    // Kept from the last forward pass.
    LayerNorm norm1_state, norm2_state;
    Attention attention;
    Matrix norm1_output, qkv_output, attention_output, norm2_output, up_output, hidden, dropout;
  };

  Transformer(const ModelSize& size, const Grid& grid, uint64_t seed, const Plant& plant);

  // A parameter of which this rank holds `rows` from first_row on, and of each of its `sections` of columns
  // as many from first_column on.
  struct Part {
    int64_t rows, columns;
    int64_t first_row = 0, first_column = 0;
    int64_t whole_columns = 0;  // 0: as many
    int64_t sections = 1;
  };
  size_t AddParameter(const std::string& name, const Part& part, float scale, float offset = 0);
  Affine AddNorm(const std::string& name);
  void AddLayer(int64_t number);

  Matrix& value(size_t parameter) { return parameters_[parameter].value; }
  Matrix* gradient(size_t parameter) { return &parameters_[parameter].gradient; }
  bool Hits(Plant::Kind kind) const { return plant_.Hits(kind, iteration_, grid_.rank()); }

  Matrix Embed();
  void EmbedBackward(const Matrix& gradient);
  void ForwardLayer(Layer& layer, Matrix* x);
  void BackwardLayer(Layer& layer, Matrix* x_gradient);
  float ForwardLoss(const Matrix& x);
  Matrix BackwardLoss();

  Matrix Norm(LayerNorm* state, const Matrix& x, const Affine& affine);
  Matrix NormBackward(const LayerNorm& state, const Affine& affine, const Matrix& gradient);
  Matrix Linear(const Matrix& x, const Affine& affine);
  Matrix LinearBackward(const Matrix& x, const Affine& affine, const Matrix& gradient);
  // Products of which each tensor parallel rank has a summand, with the bias added to their sum.
  Matrix LinearOfParts(const Matrix& x, const Affine& affine);
  void SumOverTensorParallel(Matrix* x);
  // From the next or (-1) the previous stage.
  void Receive(int step, Matrix* x);
  // Sets layer.dropout to 0 or 1 / (1 - rate), and multiplies by it.
  void Dropout(Layer& layer, Matrix* x);

  // Copies and formats nothing in iterations that nobody asked for.
  void Dump(const char* group, const std::string& name, const Matrix& matrix);
  void DumpActivation(const Layer& layer, const char* name, const Matrix& matrix);

  ModelSize size_;
  Grid grid_;
  uint64_t seed_;
  Plant plant_;
  std::vector<Parameter> parameters_;
  std::vector<Layer> layers_;
  size_t token_embedding_ = 0, position_embedding_ = 0, head_ = 0;
  Affine final_norm_ = {};

  // Kept from the last forward pass.
  Batch batch_;
  int64_t iteration_ = 0;
  LayerNorm final_norm_state_;
  Matrix final_norm_output_;
  CrossEntropy loss_;

  int64_t num_steps_ = 0;
  absl::Status dump_status_;
};

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRANSFORMER_TRANSFORMER_H_
