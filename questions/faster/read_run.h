// The times of a run of many ranks, from its run directory (dist/directory/run_directory.h).

#ifndef OTT_QUESTIONS_FASTER_READ_RUN_H_
#define OTT_QUESTIONS_FASTER_READ_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

// The measurement of a whole iteration.
inline constexpr char kIteration[] = "iteration";

// One process: iterations, from the moment at which all ranks had ended one to the moment at which all had
// ended the next, and each measurement's time in an iteration, the mean of the ranks that have it. The ranks
// are taken to begin the first measured iteration together. Of runs so long that their series were thinned
// out, iterations are those of the rank that took longest in all.
//
// DATA_LOSS if ranks are missing or have other numbers of iterations, NOT_FOUND if nothing was
// measured.
absl::StatusOr<Process> ReadRun(const std::string& run_dir);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_READ_RUN_H_
