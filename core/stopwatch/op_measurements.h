// Operations that are labelled anyway as measurements of the stopwatch.

#ifndef OTT_CORE_STOPWATCH_OP_MEASUREMENTS_H_
#define OTT_CORE_STOPWATCH_OP_MEASUREMENTS_H_

#include "ott/core/nvtx/op_range.h"

namespace ott {

// Has each OpRange measured by Stopwatch::Get() under its op's name, where that is on, as a scope would be.
//
//   OpRanges::Options options;
//   MeasureOps(options);
//   OTT_RETURN_IF_ERROR(OpRanges::Get().Enable(options));
void MeasureOps(OpRanges::Options& options);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_OP_MEASUREMENTS_H_
