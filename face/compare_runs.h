// Compares two checkpoints, folders of them, or runs, as `ott compare` does.

#ifndef OTT_FACE_COMPARE_RUNS_H_
#define OTT_FACE_COMPARE_RUNS_H_

#include "ott/questions/right/compare/compare_runs.h"  // IWYU pragma: export
#include "ott/questions/right/compare/runs_report.h"   // IWYU pragma: export

#endif  // OTT_FACE_COMPARE_RUNS_H_
