// Tolerances from repetitions of one training: what differs between them is noise.

#ifndef OTT_TOOLS_CALIBRATE_CALIBRATE_H_
#define OTT_TOOLS_CALIBRATE_CALIBRATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/check/tolerances.pb.h"

namespace ott::calibrate {

// Compares each run with each, rank by rank, in all iterations that were dumped. Every tensor gets factor
// times the largest absolute difference that was found anywhere as its atol; where all runs agree bit for
// bit, 0. FAILED_PRECONDITION, naming runs, rank and iteration, where they differ in more than values:
// tensors, shapes, dtypes, NaN or infinity in one of them only, or dumps that are missing or cannot be read.
// REQUIRES: at least two runs; factor >= 1
absl::StatusOr<Tolerances> Calibrate(const std::vector<std::string>& runs, double factor);

// As a file that ReadTolerances() reads, with a comment.
std::string TolerancesToText(const Tolerances& tolerances);

}  // namespace ott::calibrate

#endif  // OTT_TOOLS_CALIBRATE_CALIBRATE_H_
