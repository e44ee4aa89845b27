// Holds what replicas have alike.

#ifndef OTT_DIST_CHECK_REPLICA_FOR_TEST_H_
#define OTT_DIST_CHECK_REPLICA_FOR_TEST_H_

#include <cstdint>
#include <vector>

#include "ott/core/tensor/value.h"

namespace ott {

// Holds the tensors that one rank trains: of several blocks, of one element, of none.
struct ReplicaModel {
  std::vector<float> weights = std::vector<float>(100 * 400);
  std::vector<double> bias = {0.25};
  std::vector<int64_t> step = {7};

  ReplicaModel() {
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5f * static_cast<float>(i);
  }

  std::vector<NamedTensor> Tensors() const {
    return {{"layer.weights", {TensorView(weights.data(), {100, 400}), nullptr}},
            {"layer.bias", {TensorView(bias.data(), {1}), nullptr}},
            {"empty", {TensorView(bias.data(), {0, 3}), nullptr}},
            {"step", {TensorView(step.data(), {}), nullptr}}};
  }
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_REPLICA_FOR_TEST_H_
