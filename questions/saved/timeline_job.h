// The job that a timeline shows: which operation waited for which.

#ifndef OTT_QUESTIONS_SAVED_TIMELINE_JOB_H_
#define OTT_QUESTIONS_SAVED_TIMELINE_JOB_H_

#include "absl/status/statusor.h"
#include "ott/questions/saved/replay_job.h"
#include "ott/questions/saved/timeline.h"

namespace ott::saved {

// The dependencies are those of docs/whatif.md. Takes the events. FAILED_PRECONDITION, naming them, for
// operations that wait for each other in a circle.
absl::StatusOr<ReplayJob> MakeJob(Timeline timeline);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_TIMELINE_JOB_H_
