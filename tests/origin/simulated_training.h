// A training whose truth is known: a small network on several ranks in one process, which logs its operations
// as a real one does, with faults that are planted and with differences that are none.

#ifndef OTT_TESTS_ORIGIN_SIMULATED_TRAINING_H_
#define OTT_TESTS_ORIGIN_SIMULATED_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/tensor/dtype.h"
#include "ott/questions/origin/origin.pb.h"
#include "ott/tests/origin/matrix.h"

namespace ott::origin {

enum class Fault {
  kNone,
  kMissingAllReduce,
  kScaledTwiceByWorldSize,
  kStaleWeights,
  kSkippedUpdate,
  kLayerRounded,
  kLearningRateOnOneRank,
  kMaskOffByOne,
  kWrongShard,
  kDroppedBias,
  kTransposedGradient,
  kRandomStateOfOneRank,
  kLossAveragedByMicrobatch,
  kOptimizerEpsilon,
  kNarrowAccumulation,
  kUpdateTwice,
  // These faults have a size.
  kLearningRate,
  kLearningRateOfOneTensor,
  kMomentum,
  kMomentumOfOneTensor,
  kGradientScale,
  kLossScale,
};
// Those without a size, from 1 on, and those with one behind them.
inline constexpr int kNumFaults = 15;
inline constexpr int kNumSizedFaults = 6;

struct SimulatedTraining {
  // Weights, data and dropout.
  uint64_t seed = 1;
  int num_ranks = 2;
  int num_iterations = 4;
  // Elements of a bias of the hidden layers, whose weights have the square of it.
  int num_hidden = 64;
  // The dtype of activations; weights are float32. float8_e4m3fn: products of numbers of that type, else
  // bfloat16.
  DType dtype = DType::kFloat32;
  SumOrder order;
  Fault fault = Fault::kNone;
  // The factor by which what is wrong is too large, for faults that have a size.
  double fault_size = 2;
  // Has the faults of one tensor.
  std::string fault_tensor = "fc1.bias";
  // The fault is there from this iteration on.
  int fault_iteration = 1;
  // Units in the last place by which weights are moved; 0: none.
  int perturb_ulps = 0;
  // Names of operations that run without being logged.
  std::vector<std::string> not_logged;
};

// Writes a run directory with logs of operations.
absl::Status Train(const SimulatedTraining& training, const std::string& run_dir);

// The place where `ott origin` is to find a fault.
struct Truth {
  std::string description;
  // Any of these.
  std::vector<std::string> operations;
  // Empty: any, or SimulatedTraining::fault_tensor of faults of one tensor.
  std::string module;
  OriginVerdict::Kind kind = OriginVerdict::UNKNOWN;
  // Rank 1 alone, or all.
  bool one_rank = false;
};
Truth TruthOf(Fault fault);

}  // namespace ott::origin

#endif  // OTT_TESTS_ORIGIN_SIMULATED_TRAINING_H_
