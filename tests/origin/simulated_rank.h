// One rank of a simulated training: its weights and activations, and the log of its operations.

#ifndef OTT_TESTS_ORIGIN_SIMULATED_RANK_H_
#define OTT_TESTS_ORIGIN_SIMULATED_RANK_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/op_log/op_log.h"
#include "ott/tests/origin/matrix.h"

namespace ott::origin {

struct Parameter {
  std::string name;
  Matrix value;
  Matrix first_moment;
  Matrix second_moment;
  // Summed over microbatches, then over ranks.
  Matrix gradient;
};

struct Named {
  const char* name;
  const Matrix* matrix;
};

struct Operation {
  std::string name;
  std::string module;
  std::string phase;
  OpRole role = OpRole::kOperation;
};

class Rank {
 public:
  Rank(int rank, std::unique_ptr<OpLog> log, const std::vector<std::string>& not_logged)
      : rank_(rank), log_(std::move(log)), not_logged_(not_logged) {}

  // Logs an operation that reads `inputs` and writes what compute() says.
  void Run(const Operation& operation, const std::vector<Named>& inputs,
           const std::function<std::vector<Named>()>& compute);

  int rank() const { return rank_; }
  OpLog& log() { return *log_; }

  std::vector<Parameter> parameters;
  // The parameters of the iteration before.
  std::vector<Parameter> stale;
  // Kept from the forward pass for the backward pass.
  Matrix images, labels, mask, drop, embedded, normalized, hidden, activated, dropped, out, residual, logits,
      probabilities;
  Matrix random_state;
  Matrix loss;

 private:
  const int rank_;
  std::unique_ptr<OpLog> log_;
  const std::vector<std::string> not_logged_;
};

}  // namespace ott::origin

#endif  // OTT_TESTS_ORIGIN_SIMULATED_RANK_H_
