// Compares two runs that hold the same tensors in different ways, from their dumps.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_CHECK_LAYOUT_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_CHECK_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/questions/right/layout/layout.pb.h"

namespace ott::crosscheck {

struct LayoutOptions {
  // The tolerance of tensors that the file does not name. Absent: bit for bit, and sums within SumBound().
  std::optional<Tolerance> tolerance;
  std::optional<ToleranceFile> tolerance_file;
};

// Returns how far the sum of num_parts numbers of a dtype, each rounded once, may be from the same sum in any
// other order, and rounded again. It is num_parts * (u * magnitude + s), with the unit roundoff u of the
// dtype, its smallest number s, and the sum of the numbers' magnitudes. After Higham, Accuracy and Stability
// of Numerical Algorithms (2002), section 4.2. 0 for integers.
double SumBound(DType dtype, int64_t num_parts, double magnitude);

// Two runs, or two checkpoints (ReadCheckpoint() in core/checkpoint), which have one iteration, 0. A verdict
// for each iteration that a rank of either run dumped, ascending. NOT_FOUND if neither run holds dumps;
// INVALID_ARGUMENT, naming the rule, for a layout that makes no sense or is not that of the runs. What cannot
// be read or matched is NOT_COMPARED.
absl::StatusOr<std::vector<LayoutVerdict>> CheckLayout(const std::string& a_dir, const std::string& b_dir,
                                                       const Layout& layout, const LayoutOptions& options);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_CHECK_LAYOUT_H_
