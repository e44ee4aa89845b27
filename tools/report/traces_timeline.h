// Shows what devices did when in a few steps of traces.

#ifndef OTT_TOOLS_REPORT_TRACES_TIMELINE_H_
#define OTT_TOOLS_REPORT_TRACES_TIMELINE_H_

#include <vector>

#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/waiting/collectives.h"
#include "tools/report/trace_piece.h"

namespace ott::report {

// Shows the steps that the first trace has, of those that any other has as well. clocks: of each trace.
TimelinePicture TimelineOfTraces(const std::vector<TraceFindings>& traces,
                                 const std::vector<waiting::ClockOffset>& clocks);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_TRACES_TIMELINE_H_
