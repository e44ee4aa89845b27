// The check against a reference run after the fact, from the dumps that two runs left.

#ifndef OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_REFERENCE_H_
#define OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_REFERENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/share/processes.h"

namespace ott::crosscheck {

// Verdicts as CrossCheck::CheckReference gives them in a run, by iteration, then by rank: of each iteration
// that `run_dir` or the reference dumped, on each rank of `run_dir`, but for those that dump nothing in
// either. What one of them lacks is NOT_COMPARED. config: what of it concerns the reference. NOT_FOUND if
// neither run holds dumps; errors of the configuration.
absl::StatusOr<std::vector<CrossCheckVerdict>> CheckRunAgainstReference(const std::string& run_dir,
                                                                        const CrossCheckConfig& config);

// Returns true for a rank that by its run's configuration dumps nothing, and has no dumps.
bool DumpsNothing(const std::string& run_dir, const RunInfo& info, int rank);

// The task of other processes that have dumps.
extern const ShareTask kCheckAgainstReference;

// Says which iteration, rank and tensor was the first to diverge, and the ErrorTrend.
std::string FormatErrorTrend(const std::vector<CrossCheckVerdict>& verdicts);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_REFERENCE_H_
