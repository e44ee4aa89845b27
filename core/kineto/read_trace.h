// Reads the trace of one rank that torch.profiler (Kineto) wrote: Chrome's JSON, as it is or compressed.

#ifndef OTT_CORE_KINETO_READ_TRACE_H_
#define OTT_CORE_KINETO_READ_TRACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/chrome_trace/event_parser.h"

namespace ott::kineto {

using chrome_trace::CollectiveArguments;
using chrome_trace::Event;
using chrome_trace::kNoNumber;

// Holds what a trace says about itself, before or after its events.
struct TraceHeader {
  struct Device {
    int id = 0;
    std::string name;
    int sm_count = 0;
    int compute_major = 0;
    int compute_minor = 0;
  };
  struct Group {
    std::string name;
    std::string description;
    std::string ranks;  // "[0,1,2,3]"
    int size = -1;      // -1: not told
  };

  int64_t base_nanoseconds = 0;  // since 1970, of events' time 0
  int rank = -1;                 // -1: not told
  std::vector<Device> devices;
  std::vector<Group> groups;
  // Says what could not be read, and how much of it; empty if all was.
  std::vector<std::string> notes;
};

// Calls visitor for each event in the order of the file; what it refers to lives until the visitor returns. A
// window of the file is in memory, however large it is. Of a truncated file all whole events come, and a note
// says where it ends; so it is with events that are no JSON, numbers that are none and bytes that are no
// UTF-8.
//
// NOT_FOUND, INVALID_ARGUMENT (no regular file, no JSON of a trace), DATA_LOSS (nothing of it is there).
absl::StatusOr<TraceHeader> ReadTrace(const std::string& path,
                                      const std::function<void(const Event&)>& visitor);

// Returns true if the file is JSON, compressed or not, whose first events are some that torch.profiler
// writes; those that TrainingRun writes are not.
bool IsTorchTrace(const std::string& path);

}  // namespace ott::kineto

#endif  // OTT_CORE_KINETO_READ_TRACE_H_
