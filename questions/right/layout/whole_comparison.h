// Compares a whole tensor of one run with that of another.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_COMPARISON_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_COMPARISON_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/questions/right/layout/layout.pb.h"
#include "ott/questions/right/layout/whole_tensors.h"

namespace ott::crosscheck {

struct WholeComparison {
  // Differences of other replicas of A and of B, where they are beyond tolerance.
  std::vector<LayoutDifference> differences;
  bool bitwise_equal = true;
  double max_abs_error = 0;
};

// All replicas of both against the first one of A. tolerance: absent for none, which is within the rounding
// of sums. Memory: some blocks of 256 Ki elements, whatever the tensor's size, where dumps have files. Errors
// say why there is no answer: shapes, or a file that cannot be read.
absl::StatusOr<WholeComparison> CompareWholes(const BoundRun& a_run, const WholeTensor& a,
                                              const BoundRun& b_run, const WholeTensor& b,
                                              const std::optional<Tolerance>& tolerance);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_COMPARISON_H_
