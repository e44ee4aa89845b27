// The ideal run beside the measured one, for Perfetto.

#ifndef OTT_QUESTIONS_SAVED_IDEAL_TIMELINE_H_
#define OTT_QUESTIONS_SAVED_IDEAL_TIMELINE_H_

#include <string>

#include "absl/status/status.h"
#include "ott/questions/saved/replay_job.h"

namespace ott::saved {

// Each rank is there twice, as measured and as if all ranks were alike, and the critical path of the measured
// run is a process of its own. Step by step, both begin together. path: its ending chooses the format, as of
// TraceFile.
absl::Status WriteIdealTimeline(const ReplayJob& job, const std::string& path);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_IDEAL_TIMELINE_H_
