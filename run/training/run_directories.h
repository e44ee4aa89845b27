// Prepares where a run writes to.

#ifndef OTT_RUN_TRAINING_RUN_DIRECTORIES_H_
#define OTT_RUN_TRAINING_RUN_DIRECTORIES_H_

#include <string>

#include "absl/status/status.h"
#include "ott/run/training/run_frame.h"

namespace ott {

// Claims config.run_dir for this run, or an attempt below it, makes each rank's directory there, and leaves
// in the frame which it is, and where the references are, as absolute paths: the program may change its
// directory. Relative ones lie in `directory`, or in the current one where that is empty. In a run that goes
// on, what the start before left and this one writes anew is set aside in RUN/rank_NNNNN/start_1, or the
// first start_N that is free. Collective.
absl::Status PrepareDirectories(RunFrame& frame, const std::string& directory);

}  // namespace ott

#endif  // OTT_RUN_TRAINING_RUN_DIRECTORIES_H_
