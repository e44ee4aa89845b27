#include "ott/tests/origin/simulated_training.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/op_log/perturbation.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/tests/origin/simulated_rank.h"

namespace ott::origin {
namespace {

constexpr int kTokens = 48;
constexpr int kFeatures = 24;
constexpr int kClasses = 12;
constexpr int kMicrobatches = 2;
constexpr float kLearningRate = 1e-3f;
constexpr float kDropout = 0.1f;

// Does what all ranks do, in step.
class Network {
 public:
  explicit Network(const SimulatedTraining& training) : training_(training) {
    narrow_ = training.dtype == DType::kFloat8E4M3 ? DType::kBFloat16 : training.dtype;
  }

  absl::Status Create(const std::string& run_dir) {
    RunInfo info;
    info.set_world_size(training_.num_ranks);
    for (int rank = 0; rank < training_.num_ranks; ++rank) info.add_hosts("node");
    OTT_RETURN_IF_ERROR(MakeDirectories(run_dir));
    OTT_RETURN_IF_ERROR(WriteRunInfo(run_dir, info));
    for (int rank = 0; rank < training_.num_ranks; ++rank) {
      OTT_RETURN_IF_ERROR(MakeDirectories(RankDirectory(run_dir, rank)));
      OpLog::Options options;
      options.path = OpLogPath(run_dir, rank);
      options.rank = rank;
      options.world_size = training_.num_ranks;
      OTT_ASSIGN_OR_RETURN(std::unique_ptr<OpLog> log, OpLog::Create(options));
      ranks_.push_back(std::make_unique<Rank>(rank, std::move(log), training_.not_logged));
    }
    return MakeParameters();
  }

  absl::Status Train() {
    for (int iteration = 0; iteration < training_.num_iterations; ++iteration) {
      iteration_ = iteration;
      for (auto& rank : ranks_) {
        OTT_RETURN_IF_ERROR(rank->log().BeginIteration(iteration));
        for (Parameter& parameter : rank->parameters) {
          std::fill(parameter.gradient.data.begin(), parameter.gradient.data.end(), 0.0f);
        }
        if (rank->stale.empty()) rank->stale = rank->parameters;
        for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
          Load(*rank, microbatch);
          Forward(*rank);
          Backward(*rank);
        }
      }
      ReduceGradients();
      for (auto& rank : ranks_) Update(*rank);
    }
    for (auto& rank : ranks_) OTT_RETURN_IF_ERROR(rank->log().Finish());
    return absl::OkStatus();
  }

 private:
  bool Has(Fault fault) const { return training_.fault == fault && iteration_ >= training_.fault_iteration; }
  // Returns the factor by which the fault makes a number larger.
  float SizeOf(Fault fault) const { return Has(fault) ? static_cast<float>(training_.fault_size) : 1; }
  int hidden() const { return training_.num_hidden; }
  bool HasOnRank1(Fault fault, const Rank& rank) const { return Has(fault) && rank.rank() == 1; }

  absl::Status MakeParameters() {
    std::mt19937_64 random(training_.seed);
    const auto make = [&](const char* name, int rows, int columns, float deviation, float mean) {
      std::normal_distribution<float> normal(0, 1);
      Matrix value(rows, columns);
      for (float& element : value.data) element = mean + deviation * normal(random);
      for (auto& rank : ranks_) {
        const Matrix zeros(rows, columns);
        rank->parameters.push_back({name, value, zeros, zeros, zeros});
      }
    };
    make("embed.weight", kFeatures, hidden(), 0.2f, 0);
    make("embed.bias", 1, hidden(), 0.1f, 0);
    make("norm.gain", 1, hidden(), 0.1f, 1);
    make("norm.bias", 1, hidden(), 0.1f, 0);
    make("fc1.weight", hidden(), hidden(), 0.12f, 0);
    make("fc1.bias", 1, hidden(), 0.1f, 0);
    make("fc2.weight", hidden(), hidden(), 0.12f, 0);
    make("fc2.bias", 1, hidden(), 0.1f, 0);
    make("head.weight", hidden(), kClasses, 0.12f, 0);
    make("head.bias", 1, kClasses, 0.1f, 0);
    if (training_.perturb_ulps == 0) return absl::OkStatus();
    Perturbation::Options options;
    options.seed = training_.seed + 77;
    options.ulps = training_.perturb_ulps;
    OTT_RETURN_IF_ERROR(Perturbation::Get().Enable(options));
    absl::Status status;
    for (auto& rank : ranks_) {
      for (Parameter& parameter : rank->parameters) {
        status.Update(Perturbation::Offer(parameter.name, parameter.value.data.data(),
                                          {parameter.value.rows, parameter.value.columns}));
      }
    }
    Perturbation::Get().Disable();
    return status;
  }

  const Matrix& Value(const Rank& rank, const std::string& name) const {
    const bool stale = HasOnRank1(Fault::kStaleWeights, rank) && name == "fc2.weight";
    for (const Parameter& parameter : stale ? rank.stale : rank.parameters) {
      if (parameter.name == name) return parameter.value;
    }
    return rank.parameters[0].value;
  }

  Matrix& Gradient(Rank& rank, const std::string& name) const {
    for (Parameter& parameter : rank.parameters) {
      if (parameter.name == name) return parameter.gradient;
    }
    return rank.parameters[0].gradient;
  }

  // left right, or with either transposed.
  Matrix Product(const Matrix& left, bool left_transposed, const Matrix& right, bool right_transposed,
                 DType dtype, bool narrow = false) const {
    const int rows = left_transposed ? left.columns : left.rows;
    const int depth = left_transposed ? left.rows : left.columns;
    const int columns = right_transposed ? right.rows : right.columns;
    Matrix result(rows, columns, dtype);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        const float sum = Dot(
            training_.order, depth, narrow,
            [&](int k) { return left_transposed ? left.at(k, i) : left.at(i, k); },
            [&](int k) { return right_transposed ? right.at(j, k) : right.at(k, j); });
        result.at(i, j) = RoundTo(sum, dtype);
      }
    }
    return result;
  }

  float Sum(int count, const std::function<float(int)>& term) const {
    return Dot(training_.order, count, false, term, [](int) { return 1.0f; });
  }

  void Load(Rank& rank, int microbatch) {
    const int shard = HasOnRank1(Fault::kWrongShard, rank) ? 0 : rank.rank();
    rank.Run({"data", "", "load", OpRole::kLoad}, {}, [&]() -> std::vector<Named> {
      std::seed_seq seed = {training_.seed, static_cast<uint64_t>(iteration_),
                            static_cast<uint64_t>(microbatch), static_cast<uint64_t>(shard)};
      std::mt19937_64 random(seed);
      std::normal_distribution<float> normal(0, 1);
      rank.images = Matrix(kTokens, kFeatures);
      for (float& value : rank.images.data) value = normal(random);
      rank.labels = Matrix(kTokens, 1);
      for (float& value : rank.labels.data) value = static_cast<float>(random() % kClasses);
      return {{"tokens", &rank.images}, {"labels", &rank.labels}};
    });
    rank.images = rank.images.As(narrow_);
    rank.Run({"padding_mask", "", "forward"}, {{"labels", &rank.labels}}, [&]() -> std::vector<Named> {
      const int length = kTokens - 6 + (Has(Fault::kMaskOffByOne) ? 1 : 0);
      rank.mask = Matrix(kTokens, 1);
      for (int i = 0; i < kTokens; ++i) rank.mask.at(i, 0) = i < length ? 1 : 0;
      return {{"mask", &rank.mask}};
    });
    rank.Run({"random_state", "", "load", OpRole::kLoad}, {}, [&]() -> std::vector<Named> {
      rank.random_state = Matrix(1, 1);
      // Small, so that another one is no rounding of it.
      rank.random_state.at(0, 0) =
          static_cast<float>(training_.seed % 100 * 100 + iteration_ * 10 + microbatch +
                             (HasOnRank1(Fault::kRandomStateOfOneRank, rank) ? 5 : 0));
      return {{"state", &rank.random_state}};
    });
    rank.Run({"dropout_mask", "", "forward"}, {{"state", &rank.random_state}}, [&]() -> std::vector<Named> {
      std::mt19937_64 random(static_cast<uint64_t>(rank.random_state.at(0, 0)));
      rank.drop = Matrix(kTokens, hidden());
      for (float& value : rank.drop.data) {
        value = static_cast<float>(random() % 1000) < 1000 * kDropout ? 0 : 1 / (1 - kDropout);
      }
      return {{"mask", &rank.drop}};
    });
  }

  // Rounds its factors to float8 if the training computes in that.
  Matrix Linear(Rank& rank, const std::string& layer, const Matrix& input) {
    const Matrix& weight = Value(rank, layer + ".weight");
    const Matrix& bias = Value(rank, layer + ".bias");
    Matrix result;
    const bool drops_bias = layer == "fc1" && Has(Fault::kDroppedBias);
    std::vector<Named> inputs = {{"input", &input}, {"weight", &weight}};
    if (!drops_bias) inputs.push_back({"bias", &bias});
    rank.Run({"linear", layer, "forward"}, inputs, [&]() -> std::vector<Named> {
      const DType factors = training_.dtype;
      const bool narrow = layer == "fc1" && Has(Fault::kNarrowAccumulation);
      result = Product(input.As(factors), false, weight.As(factors), false, DType::kFloat32, narrow);
      for (int i = 0; i < result.rows && !drops_bias; ++i) {
        for (int j = 0; j < result.columns; ++j) result.at(i, j) += bias.at(0, j);
      }
      if (layer == "fc2" && Has(Fault::kLayerRounded)) {
        result = result.As(narrow_ == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat8E4M3);
      }
      result = result.As(narrow_);
      return {{"output", &result}};
    });
    return result;
  }

  void Forward(Rank& rank) {
    rank.embedded = Linear(rank, "embed", rank.images);
    const Matrix& gain = Value(rank, "norm.gain");
    const Matrix& bias = Value(rank, "norm.bias");
    rank.Run({"layernorm", "norm", "forward"}, {{"input", &rank.embedded}, {"gain", &gain}, {"bias", &bias}},
             [&]() -> std::vector<Named> {
               rank.normalized = Matrix(kTokens, hidden(), narrow_);
               for (int i = 0; i < kTokens; ++i) {
                 const auto [mean, scale] = MeanAndScale(rank.embedded, i);
                 for (int j = 0; j < hidden(); ++j) {
                   rank.normalized.at(i, j) = RoundTo(
                       (rank.embedded.at(i, j) - mean) * scale * gain.at(0, j) + bias.at(0, j), narrow_);
                 }
               }
               return {{"output", &rank.normalized}};
             });
    rank.hidden = Linear(rank, "fc1", rank.normalized);
    rank.Run({"gelu", "fc1", "forward"}, {{"input", &rank.hidden}}, [&]() -> std::vector<Named> {
      rank.activated = rank.hidden;
      for (float& value : rank.activated.data) {
        value = RoundTo(0.5f * value * (1 + std::erf(value * 0.70710678f)), narrow_);
      }
      return {{"output", &rank.activated}};
    });
    rank.Run({"dropout", "fc1", "forward"}, {{"input", &rank.activated}, {"mask", &rank.drop}},
             [&]() -> std::vector<Named> {
               rank.dropped = Times(rank.activated, rank.drop);
               return {{"output", &rank.dropped}};
             });
    rank.out = Linear(rank, "fc2", rank.dropped);
    rank.Run({"add", "residual", "forward"}, {{"a", &rank.embedded}, {"b", &rank.out}},
             [&]() -> std::vector<Named> {
               rank.residual = Plus(rank.embedded, rank.out);
               return {{"output", &rank.residual}};
             });
    rank.logits = Linear(rank, "head", rank.residual);
    rank.Run({"cross_entropy", "", "forward"},
             {{"logits", &rank.logits}, {"labels", &rank.labels}, {"mask", &rank.mask}},
             [&]() -> std::vector<Named> {
               CrossEntropy(rank);
               return {{"probabilities", &rank.probabilities}, {"loss", &rank.loss}};
             });
  }

  std::pair<float, float> MeanAndScale(const Matrix& m, int row) const {
    const float mean = Sum(m.columns, [&](int j) { return m.at(row, j); }) / static_cast<float>(m.columns);
    const float variance =
        Sum(m.columns, [&](int j) { return (m.at(row, j) - mean) * (m.at(row, j) - mean); }) /
        static_cast<float>(m.columns);
    return {mean, 1 / std::sqrt(variance + 1e-5f)};
  }

  // The loss is summed over tokens and divided by those of all microbatches.
  float TokensOfLoss(const Rank& rank) const {
    const float tokens = Sum(kTokens, [&](int i) { return rank.mask.at(i, 0); });
    return Has(Fault::kLossAveragedByMicrobatch) ? tokens : tokens * kMicrobatches;
  }

  void CrossEntropy(Rank& rank) const {
    rank.probabilities = Matrix(kTokens, kClasses);
    std::vector<float> losses(kTokens);
    for (int i = 0; i < kTokens; ++i) {
      float largest = rank.logits.at(i, 0);
      for (int j = 1; j < kClasses; ++j) largest = std::max(largest, rank.logits.at(i, j));
      const float sum = Sum(kClasses, [&](int j) { return std::exp(rank.logits.at(i, j) - largest); });
      for (int j = 0; j < kClasses; ++j) {
        rank.probabilities.at(i, j) = std::exp(rank.logits.at(i, j) - largest) / sum;
      }
      losses[i] =
          -std::log(rank.probabilities.at(i, static_cast<int>(rank.labels.at(i, 0)))) * rank.mask.at(i, 0);
    }
    rank.loss = Matrix(1, 1);
    rank.loss.at(0, 0) = Sum(kTokens, [&](int i) { return losses[i]; }) / TokensOfLoss(rank);
  }

  // Adds the gradients of a layer's parameters, and returns that of its input.
  Matrix LinearBackward(Rank& rank, const std::string& layer, const Matrix& gradient, const Matrix& input) {
    const Matrix& weight = Value(rank, layer + ".weight");
    Matrix of_input;
    Matrix of_weight;
    Matrix of_bias;
    rank.Run({"LinearBackward", layer, "backward"},
             {{"gradient", &gradient}, {"input", &input}, {"weight", &weight}}, [&]() -> std::vector<Named> {
               const DType factors = training_.dtype;
               of_input = Product(gradient, false, weight.As(factors), true, narrow_);
               of_weight = Product(input.As(factors), true, gradient, false, DType::kFloat32);
               if (layer == "fc2" && Has(Fault::kTransposedGradient)) {
                 const Matrix right = of_weight;
                 for (int i = 0; i < hidden(); ++i) {
                   for (int j = 0; j < hidden(); ++j) of_weight.at(i, j) = right.at(j, i);
                 }
               }
               of_bias = Matrix(1, gradient.columns);
               for (int j = 0; j < gradient.columns; ++j) {
                 of_bias.at(0, j) = Sum(gradient.rows, [&](int i) { return gradient.at(i, j); });
               }
               return {{"input", &of_input}, {"weight", &of_weight}, {"bias", &of_bias}};
             });
    Accumulate(rank, layer + ".weight", of_weight);
    Accumulate(rank, layer + ".bias", of_bias);
    return of_input;
  }

  void Accumulate(Rank& rank, const std::string& parameter, const Matrix& gradient) {
    Matrix& sum = Gradient(rank, parameter);
    rank.Run({"accumulate", parameter, "backward"}, {{"sum", &sum}, {"gradient", &gradient}},
             [&]() -> std::vector<Named> {
               sum = Plus(sum, gradient);
               return {{"sum", &sum}};
             });
  }

  void Backward(Rank& rank) {
    Matrix of_logits(kTokens, kClasses, narrow_);
    rank.Run({"CrossEntropyBackward", "", "backward"},
             {{"probabilities", &rank.probabilities}, {"labels", &rank.labels}, {"mask", &rank.mask}},
             [&]() -> std::vector<Named> {
               const float tokens = TokensOfLoss(rank);
               for (int i = 0; i < kTokens; ++i) {
                 for (int j = 0; j < kClasses; ++j) {
                   const float target = j == static_cast<int>(rank.labels.at(i, 0)) ? 1 : 0;
                   of_logits.at(i, j) =
                       RoundTo(SizeOf(Fault::kLossScale) * (rank.probabilities.at(i, j) - target) *
                                   rank.mask.at(i, 0) / tokens,
                               narrow_);
                 }
               }
               return {{"logits", &of_logits}};
             });
    const Matrix of_residual = LinearBackward(rank, "head", of_logits, rank.residual);
    const Matrix of_dropped = LinearBackward(rank, "fc2", of_residual, rank.dropped);
    Matrix of_hidden;
    rank.Run({"GeluDropoutBackward", "fc1", "backward"},
             {{"gradient", &of_dropped}, {"input", &rank.hidden}, {"mask", &rank.drop}},
             [&]() -> std::vector<Named> {
               of_hidden = of_dropped;
               for (size_t i = 0; i < of_hidden.data.size(); ++i) {
                 const float x = rank.hidden.data[i];
                 const float slope =
                     0.5f * (1 + std::erf(x * 0.70710678f)) + x * 0.39894228f * std::exp(-0.5f * x * x);
                 of_hidden.data[i] = RoundTo(of_dropped.data[i] * rank.drop.data[i] * slope, narrow_);
               }
               return {{"output", &of_hidden}};
             });
    const Matrix of_normalized = LinearBackward(rank, "fc1", of_hidden, rank.normalized);
    const Matrix of_embedded = NormBackward(rank, of_normalized, of_residual);
    LinearBackward(rank, "embed", of_embedded, rank.images);
  }

  Matrix NormBackward(Rank& rank, const Matrix& gradient, const Matrix& of_residual) {
    const Matrix& gain = Value(rank, "norm.gain");
    Matrix of_input(kTokens, hidden(), narrow_);
    Matrix of_gain(1, hidden());
    Matrix of_bias(1, hidden());
    rank.Run(
        {"LayerNormBackward", "norm", "backward"},
        {{"gradient", &gradient}, {"input", &rank.embedded}, {"gain", &gain}, {"residual", &of_residual}},
        [&]() -> std::vector<Named> {
          Matrix normalized(kTokens, hidden());
          for (int i = 0; i < kTokens; ++i) {
            const auto [mean, scale] = MeanAndScale(rank.embedded, i);
            for (int j = 0; j < hidden(); ++j) normalized.at(i, j) = (rank.embedded.at(i, j) - mean) * scale;
            const auto slope = [&](int j) { return gradient.at(i, j) * gain.at(0, j); };
            const float of_mean = Sum(hidden(), slope) / hidden();
            const float along =
                Sum(hidden(), [&](int j) { return slope(j) * normalized.at(i, j); }) / hidden();
            for (int j = 0; j < hidden(); ++j) {
              const float value = scale * (slope(j) - of_mean - normalized.at(i, j) * along);
              of_input.at(i, j) = RoundTo(value + of_residual.at(i, j), narrow_);
            }
          }
          for (int j = 0; j < hidden(); ++j) {
            of_gain.at(0, j) = Sum(kTokens, [&](int i) { return gradient.at(i, j) * normalized.at(i, j); });
            of_bias.at(0, j) = Sum(kTokens, [&](int i) { return gradient.at(i, j); });
          }
          return {{"input", &of_input}, {"gain", &of_gain}, {"bias", &of_bias}};
        });
    Accumulate(rank, "norm.gain", of_gain);
    Accumulate(rank, "norm.bias", of_bias);
    return of_input;
  }

  void ReduceGradients() {
    const int num_ranks = training_.num_ranks;
    for (size_t p = 0; p < ranks_[0]->parameters.size(); ++p) {
      const std::string& name = ranks_[0]->parameters[p].name;
      Matrix sum = ranks_[0]->parameters[p].gradient;
      for (size_t i = 0; i < sum.data.size(); ++i) {
        float total = 0;
        for (int r = 0; r < num_ranks; ++r) {
          const int rank = training_.order.ranks_from_last ? num_ranks - 1 - r : r;
          total += ranks_[rank]->parameters[p].gradient.data[i];
        }
        sum.data[i] = total;
      }
      for (auto& rank : ranks_) {
        Matrix& gradient = rank->parameters[p].gradient;
        if (!(name == "fc1.weight" && Has(Fault::kMissingAllReduce))) {
          rank->Run({"allreduce", name, "reduce", OpRole::kCollective}, {{"gradient", &gradient}},
                    [&]() -> std::vector<Named> {
                      gradient = sum;
                      return {{"gradient", &gradient}};
                    });
        }
        rank->Run({"average", name, "reduce"}, {{"gradient", &gradient}}, [&]() -> std::vector<Named> {
          const bool twice = name == "fc2.weight" && Has(Fault::kScaledTwiceByWorldSize);
          const auto divisor = static_cast<float>(twice ? num_ranks * num_ranks : num_ranks);
          const float scale = name == "fc2.weight" ? SizeOf(Fault::kGradientScale) : 1;
          for (float& value : gradient.data) value *= scale / divisor;
          return {{"gradient", &gradient}};
        });
      }
    }
  }

  void Update(Rank& rank) {
    const std::vector<Parameter> before = rank.parameters;
    for (Parameter& parameter : rank.parameters) {
      if (parameter.name == "head.weight" && Has(Fault::kSkippedUpdate)) continue;
      const bool twice = parameter.name == "head.weight" && Has(Fault::kUpdateTwice);
      for (int times = 0; times < (twice ? 2 : 1); ++times) RunUpdate(rank, parameter);
    }
    rank.stale = before;
  }

  void RunUpdate(Rank& rank, Parameter& parameter) {
    rank.Run({"adam", parameter.name, "update", OpRole::kUpdate},
             {{"weight", &parameter.value},
              {"gradient", &parameter.gradient},
              {"first_moment", &parameter.first_moment},
              {"second_moment", &parameter.second_moment}},
             [&]() -> std::vector<Named> {
               Adam(rank, parameter);
               return {{"weight", &parameter.value},
                       {"first_moment", &parameter.first_moment},
                       {"second_moment", &parameter.second_moment}};
             });
  }

  void Adam(const Rank& rank, Parameter& parameter) const {
    const bool is_faulty = parameter.name == training_.fault_tensor;
    const float beta1 =
        1 - SizeOf(Fault::kMomentum) * (is_faulty ? SizeOf(Fault::kMomentumOfOneTensor) : 1) * 0.1f;
    constexpr float kBeta2 = 0.99f;
    float rate = HasOnRank1(Fault::kLearningRateOnOneRank, rank) ? 2 * kLearningRate : kLearningRate;
    rate *= SizeOf(Fault::kLearningRate);
    if (is_faulty) rate *= SizeOf(Fault::kLearningRateOfOneTensor);
    const float epsilon = Has(Fault::kOptimizerEpsilon) ? 1e-3f : 1e-8f;
    const auto step = static_cast<float>(iteration_ + 1);
    for (size_t i = 0; i < parameter.value.data.size(); ++i) {
      const float gradient = parameter.gradient.data[i];
      float& first = parameter.first_moment.data[i];
      float& second = parameter.second_moment.data[i];
      first = beta1 * first + (1 - beta1) * gradient;
      second = kBeta2 * second + (1 - kBeta2) * gradient * gradient;
      const float m = first / (1 - std::pow(beta1, step));
      const float v = second / (1 - std::pow(kBeta2, step));
      parameter.value.data[i] -= rate * m / (std::sqrt(v) + epsilon);
    }
  }

  const SimulatedTraining training_;
  DType narrow_;
  int iteration_ = 0;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace

absl::Status Train(const SimulatedTraining& training, const std::string& run_dir) {
  Network network(training);
  OTT_RETURN_IF_ERROR(network.Create(run_dir));
  return network.Train();
}

Truth TruthOf(Fault fault) {
  using Kind = OriginVerdict;
  static const auto& truths = *new std::map<Fault, Truth>{
      {Fault::kNone, {"none", {}, "", Kind::NONE}},
      {Fault::kMissingAllReduce,
       {"missing all-reduce of one tensor", {"allreduce"}, "fc1.weight", Kind::OPERATION}},
      {Fault::kScaledTwiceByWorldSize,
       {"wrong scaling by world size", {"average"}, "fc2.weight", Kind::OPERATION}},
      {Fault::kStaleWeights, {"stale weights on one rank", {"linear"}, "fc2", Kind::INPUT, true}},
      {Fault::kSkippedUpdate, {"skipped update", {"adam"}, "head.weight", Kind::UPDATE}},
      {Fault::kLayerRounded, {"one layer rounded to a narrower dtype", {"linear"}, "fc2", Kind::OPERATION}},
      {Fault::kLearningRateOnOneRank, {"wrong learning rate on one rank", {"adam"}, "", Kind::UPDATE, true}},
      {Fault::kMaskOffByOne, {"mask off by one", {"padding_mask"}, "", Kind::OPERATION}},
      {Fault::kWrongShard, {"wrong shard on one rank", {"data"}, "", Kind::INPUT, true}},
      {Fault::kDroppedBias, {"dropped bias", {"linear"}, "fc1", Kind::OPERATION}},
      {Fault::kTransposedGradient, {"transposed gradient", {"LinearBackward"}, "fc2", Kind::OPERATION}},
      {Fault::kRandomStateOfOneRank,
       {"random state not synchronised", {"random_state"}, "", Kind::INPUT, true}},
      {Fault::kLossAveragedByMicrobatch,
       {"wrong averaging of the loss over microbatches", {"cross_entropy"}, "", Kind::OPERATION}},
      {Fault::kOptimizerEpsilon, {"optimizer's epsilon", {"adam"}, "", Kind::UPDATE}},
      {Fault::kNarrowAccumulation, {"accumulation in bfloat16", {"linear"}, "fc1", Kind::OPERATION}},
      {Fault::kUpdateTwice, {"update done twice", {"adam"}, "head.weight", Kind::UPDATE}},
      {Fault::kLearningRate, {"learning rate", {"adam"}, "", Kind::UPDATE}},
      {Fault::kLearningRateOfOneTensor, {"learning rate of one tensor", {"adam"}, "", Kind::UPDATE}},
      {Fault::kMomentum, {"1 - beta1", {"adam"}, "", Kind::UPDATE}},
      {Fault::kMomentumOfOneTensor, {"1 - beta1 of one tensor", {"adam"}, "", Kind::UPDATE}},
      {Fault::kGradientScale, {"scale of one gradient", {"average"}, "fc2.weight", Kind::OPERATION}},
      {Fault::kLossScale, {"scale of the loss", {"CrossEntropyBackward"}, "", Kind::OPERATION}},
  };
  return truths.at(fault);
}

}  // namespace ott::origin
