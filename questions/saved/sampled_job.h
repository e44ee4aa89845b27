// The job that samples of its ranks' iterations show.

#ifndef OTT_QUESTIONS_SAVED_SAMPLED_JOB_H_
#define OTT_QUESTIONS_SAVED_SAMPLED_JOB_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/replay_job.h"

namespace ott::saved {

// Work is what lies between collective measurements, each stretch by the innermost measurement in which it
// was spent. Collective measurements of one name, iteration and position in it are a group of the ranks that
// came to it. Where ranks end one before others begin it, those that always overlap are a group of their own,
// such as a send and its receive of one name. A step lasts from the moment at which the last rank came to the
// last collective measurement of an iteration, to the same moment of the next iteration.
//
// NOT_FOUND if there are no iterations that all ranks kept; FAILED_PRECONDITION, naming them, for
// operations that wait for each other in a circle; INVALID_ARGUMENT for samples whose times or counts are
// impossible.
absl::StatusOr<ReplayJob> MakeJob(std::vector<IterationSample> samples);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_SAMPLED_JOB_H_
