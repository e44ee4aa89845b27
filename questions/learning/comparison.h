// Judges whether the runs of B learn as well as those of A, with the rate at which such an answer is wrong.
// The rules are docs/decisions/learning_curves.md.

#ifndef OTT_QUESTIONS_LEARNING_COMPARISON_H_
#define OTT_QUESTIONS_LEARNING_COMPARISON_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/learning/common_points.h"
#include "ott/questions/learning/curve.h"
#include "ott/questions/learning/learning.pb.h"

namespace ott::learning {

// The better direction; kByCurve: lower for a loss, else the one in which the curves of most runs of A move.
enum class Better { kByCurve, kLower, kHigher };

struct LearningOptions {
  // An answer of worse or better may be wrong so often.
  double error = 0.01;
  // The metric that the answer is about; empty: DefaultMetric().
  std::string metric;
  Better better = Better::kByCurve;
  // At most one: what is as good, in units of the metric, or as a share of the steps. Neither: half of what
  // the runs of A span.
  std::optional<double> margin;
  std::optional<double> margin_share;
  // The most runs a side there can be, for who compares after each run that ends; 0: compared once.
  size_t max_runs = 0;
};

// So many runs a side can tell at this error.
size_t FewestRunsASide(double error);

// INVALID_ARGUMENT if a run lacks the metric, runs have no point in common, or the curves do not tell what is
// better. x_name: what x is.
absl::StatusOr<LearningVerdict> Compare(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                                        const std::string& x_name, const LearningOptions& options);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_COMPARISON_H_
