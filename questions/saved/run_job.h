// The job that a run directory shows.

#ifndef OTT_QUESTIONS_SAVED_RUN_JOB_H_
#define OTT_QUESTIONS_SAVED_RUN_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "ott/questions/saved/replay_job.h"

namespace ott::saved {

// Reads RUN/rank_*/iterations.pb. Ranks whose file is missing or unreadable make the job incomplete, and
// notes say why. NOT_FOUND if run_dir is no run directory, or no iterations were kept by all ranks; errors of
// sampled_job.h.
absl::StatusOr<ReplayJob> ReadRunJob(const std::string& run_dir);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_RUN_JOB_H_
