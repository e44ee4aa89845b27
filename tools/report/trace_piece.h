// What the report needs of one trace, read by whichever process has it.

#ifndef OTT_TOOLS_REPORT_TRACE_PIECE_H_
#define OTT_TOOLS_REPORT_TRACE_PIECE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/share/processes.h"
#include "ott/questions/waiting/collectives.h"

namespace ott::report {

// An op on one rank.
struct OpSum {
  int64_t nanoseconds = 0;
  double flops = 0;
  double bytes = 0;  // of the same calls
  int64_t flops_time = 0;
  double peak = 0;  // percent times nanoseconds
  int64_t peak_time = 0;
  int64_t compute_time = 0;  // that compute limits, of peak_time
};

// A kernel or a copy.
struct DeviceActivity {
  int64_t start = 0;  // on the trace's clock, since 1970 where that is known
  int64_t duration = 0;
  size_t name = 0;  // of TraceFindings::span_names
  int depth = 0;    // others that run when it starts
  bool collective = false;
};

struct TraceStep {
  int64_t number = 0;
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<DeviceActivity> spans;  // by their start; the longest ones, if there are many
  int64_t num_left_out = 0;
};

struct TraceFindings {
  waiting::TraceSummary summary;  // rank -1: not told
  std::vector<std::string> notes;
  std::map<std::string, OpSum> ops;  // by op and direction
  std::string device;                // the first one's name; "": none
  std::string host_times;            // a table; empty where devices did something
  int64_t num_steps = 0;             // 1 if the trace has none
  std::vector<std::string> span_names;
  // The first step, the last and some between, if they are asked for; a trace without steps is one.
  std::vector<TraceStep> steps;
};

// Returns what each trace tells, in the order of the paths. num_timelines: so many of the first ones have
// steps. Errors: kernels::ReadProfile()'s, UNAVAILABLE for those of a lost process.
std::vector<absl::StatusOr<TraceFindings>> ReadTraces(const std::vector<std::string>& paths,
                                                      size_t num_timelines);

enum class NamedTrace : uint8_t { kTrace, kEmpty, kOther, kNoFile };

// Returns the files in a directory that are named as traces, and what they hold.
std::map<std::string, NamedTrace> ListNamedTraces(const std::string& directory);

// Those of the above.
std::vector<ShareTask> ShareTasks();

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_TRACE_PIECE_H_
