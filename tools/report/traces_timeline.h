// Shows what devices did when in a few steps of traces.

#ifndef OTT_TOOLS_REPORT_TRACES_TIMELINE_H_
#define OTT_TOOLS_REPORT_TRACES_TIMELINE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/waiting/collectives.h"

namespace ott::report {

// A kernel or a copy. Nanoseconds on the trace's clock.
struct DeviceActivity {
  int64_t start = 0;
  int64_t duration = 0;
  std::string name;
  bool collective = false;
};

// Beginnings of a trace's steps, with their numbers; see waiting::StepsOf().
using Steps = std::vector<std::pair<int64_t, int64_t>>;

// Shows the first step, the last and some between; without steps, of all of the traces. steps, clocks, spans:
// of each trace; spans by their start.
TimelinePicture TimelineOfTraces(const std::vector<waiting::RankProfile>& traces, std::vector<Steps> steps,
                                 const std::vector<waiting::ClockOffset>& clocks,
                                 const std::vector<std::vector<DeviceActivity>>& spans);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_TRACES_TIMELINE_H_
