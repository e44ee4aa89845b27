// A multi-layer perceptron with one hidden layer, written out by hand.

#ifndef OTT_EXAMPLES_TRAIN_DIGITS_MLP_H_
#define OTT_EXAMPLES_TRAIN_DIGITS_MLP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "examples/train_digits/digits.h"

namespace ott::examples {

// Says how matrix products sum. The results differ in rounding only.
enum class Kernel {
  kReference,  // one running sum, from first to last
  kOptimized,  // eight sums side by side, which the compiler turns into vector instructions
};

// A parameter and its gradient, both row-major of the same shape.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> value;
  std::vector<float> gradient;
  std::vector<float> velocity;
};

// softmax(relu(x w1ᵀ + b1) w2ᵀ + b2), trained by cross entropy and SGD with momentum.
// The matrix products of forward and backward pass go through Kernel.
class Mlp {
 public:
  // He (2015) initialisation; equal seeds give equal weights.
  Mlp(int hidden, uint64_t seed, Kernel kernel);

  // Summed (not mean) cross entropy of the batch. Keeps what Backward needs.
  double Forward(const Digits& batch);

  // Sets each parameter's gradient to d(summed loss)/d(parameter).
  // REQUIRES: Forward(batch) was the last forward pass.
  void Backward(const Digits& batch);

  // velocity = momentum * velocity + scale * gradient; value -= learning_rate * velocity.
  void Step(float learning_rate, float momentum, float scale);

  // Fraction of `digits` whose largest output is the label.
  double Accuracy(const Digits& digits);

  // w1 [hidden, 64], b1 [hidden], w2 [10, hidden], b2 [10].
  std::vector<Parameter>& parameters() { return parameters_; }

 private:
  // out = in weightᵀ + bias; in is [count, depth].
  void Linear(const char* layer, const std::vector<float>& in, int64_t depth, const Parameter& weight,
              const Parameter& bias, std::vector<float>* out);

  const Parameter& w1() const { return parameters_[0]; }
  const Parameter& b1() const { return parameters_[1]; }
  const Parameter& w2() const { return parameters_[2]; }
  const Parameter& b2() const { return parameters_[3]; }

  int hidden_size_;
  Kernel kernel_;
  std::vector<Parameter> parameters_;
  std::vector<float> hidden_;         // [batch, hidden]
  std::vector<float> probabilities_;  // [batch, 10]
};

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRAIN_DIGITS_MLP_H_
