// Describes a trace, as text.

#ifndef OTT_TOOLS_TRACE_TRACE_REPORT_H_
#define OTT_TOOLS_TRACE_TRACE_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ott/core/trace/trace_reader.h"

namespace ott::trace {

// Adds up ranges of one name inside of ranges of the same names, over all threads, ranks and windows; steps
// count as one name, and operations whatever their numbers and sizes. Tracks of devices are apart. Not
// thread-safe.
//
//   TraceReport report;
//   traces.Visit([&](const Trace& trace) { report.Add(trace); });
//   std::fputs(report.Tree().c_str(), stdout);
class TraceReport {
 public:
  // REQUIRES: its events are in the order of RunTraces::Visit().
  void Add(const Trace& trace);

  // Ranges inside of ranges: inclusive and exclusive time, and how often. Those below a share of all ranks'
  // time are left out, and counted in a last line.
  std::string Tree(double min_share) const;
  // Returns the ranges with the most exclusive time, wherever they are.
  std::string Top(size_t count) const;
  // Times in which no device was active between two activities, by the innermost range in which the thread of
  // the steps then was. Empty if there is no device activity.
  std::string Gaps() const;

 private:
  struct Range {
    int64_t count = 0;
    int64_t inclusive = 0;
    int64_t exclusive = 0;
    int64_t longest = 0;
    std::map<std::string, Range> inner;
  };
  struct Gap {
    int64_t count = 0;
    int64_t total = 0;
    int64_t longest = 0;
  };
  // The range in which a thread was.
  struct Part {
    int64_t begin;
    int64_t end;
    std::string name;
  };
  struct Interval {
    int64_t begin;
    int64_t end;
  };

  // The events of one track.
  void AddTrack(const TraceEvent* begin, const TraceEvent* end, Range& root, std::vector<Part>* parts);
  void AddGaps(std::vector<Interval> activities, const std::vector<Part>& parts);

  Range root_;
  // Over all traces, nanoseconds.
  int64_t total_ = 0;
  int64_t device_busy_ = 0;
  int64_t num_with_device_ = 0;
  int64_t total_with_device_ = 0;
  std::map<std::string, Gap> gaps_;
};

}  // namespace ott::trace

#endif  // OTT_TOOLS_TRACE_TRACE_REPORT_H_
