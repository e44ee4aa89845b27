// Records some steps as a timeline, by torch.profiler's schedule.

#ifndef OTT_FACE_PROFILER_H_
#define OTT_FACE_PROFILER_H_

#include "ott/core/trace/profiler.h"     // IWYU pragma: export
#include "ott/core/trace/write_trace.h"  // IWYU pragma: export

#endif  // OTT_FACE_PROFILER_H_
