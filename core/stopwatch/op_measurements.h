// Measures operations with the stopwatch where op ranges label them anyway.

#ifndef OTT_CORE_STOPWATCH_OP_MEASUREMENTS_H_
#define OTT_CORE_STOPWATCH_OP_MEASUREMENTS_H_

#include "ott/core/nvtx/op_range.h"

namespace ott {

// While Stopwatch::Get() is on, each OpRange is measured like a scope, under the name of its op.
//
//   OpRanges::Options options;
//   MeasureOps(options);
//   OTT_RETURN_IF_ERROR(OpRanges::Get().Enable(options));
void MeasureOps(OpRanges::Options& options);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_OP_MEASUREMENTS_H_
