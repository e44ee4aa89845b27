// Finds the operation that first computed something else than in another run.

#ifndef OTT_QUESTIONS_ORIGIN_ORIGIN_H_
#define OTT_QUESTIONS_ORIGIN_ORIGIN_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/origin/aligned_ops.h"
#include "ott/questions/origin/origin.pb.h"

namespace ott::origin {

// Compares `current` with `reference`, rank by rank, or by the pairs (of the reference, of the current run)
// in `ranks`. perturbed: the reference's program with inputs that differ by rounding, and differences that it
// explains are none. Null: any bit counts. NOT_FOUND if no rank, iteration or operation is in both.
absl::StatusOr<OriginVerdict> FindOrigin(const RunLogs& reference, const RunLogs& current,
                                         const RunLogs* perturbed = nullptr,
                                         std::vector<std::pair<int, int>> ranks = {});

// Does the same from run directories. perturbed: empty for none.
absl::StatusOr<OriginVerdict> FindOrigin(const std::string& reference, const std::string& current,
                                         const std::string& perturbed,
                                         const std::vector<std::pair<int, int>>& ranks = {});

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_H_
