// Replays a job as it was measured, and tells of every operation.

#ifndef OTT_QUESTIONS_SAVED_FULL_REPLAY_H_
#define OTT_QUESTIONS_SAVED_FULL_REPLAY_H_

#include <cstdint>
#include <vector>

#include "ott/questions/saved/replay_job.h"

namespace ott::saved {

// By what share the steps of the replay, launch delays included, differ from those that were measured; 1
// where none took time.
double ReplayError(const ReplayJob& job);

// The share that operations of one rank and kind contribute to what the steps' ends waited for.
struct PathPart {
  int32_t rank = 0;  // indices of the job's
  int32_t kind = 0;
  double seconds = 0;
};

// Without launch delays. Most first.
std::vector<PathPart> FindCriticalPath(const ReplayJob& job);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_FULL_REPLAY_H_
