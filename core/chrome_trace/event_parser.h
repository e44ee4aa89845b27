// One event of a trace in Chrome's format, and what PyTorch's profiler (Kineto) says in its arguments.

#ifndef OTT_CORE_CHROME_TRACE_EVENT_PARSER_H_
#define OTT_CORE_CHROME_TRACE_EVENT_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ott::chrome_trace {

inline constexpr int64_t kNoNumber = INT64_MIN;

// The arguments about a collective, of its op ("record_param_comms") and of its kernel.
struct CollectiveArguments {
  std::string_view name;  // "allreduce", "_allgather_base"; empty: none of the arguments is there
  std::string_view dtype;
  std::string_view group;              // "Process Group Name"
  std::string_view group_description;  // "default_pg"
  std::string_view group_ranks;        // "[0, 1, 2, 3]", shortened by "..." for many
  int64_t in_elements = kNoNumber;
  int64_t out_elements = kNoNumber;
  int64_t group_size = kNoNumber;
  int64_t sequence_number = kNoNumber;  // "Seq"
};

// The useful arguments of an event.
struct EventArguments {
  std::string_view all;  // a JSON object as it stands in the file; empty for frames of Python and instants
  int64_t external_id = kNoNumber;
  int64_t correlation = kNoNumber;
  int64_t device = kNoNumber;
  int64_t stream = kNoNumber;
  int64_t bytes = kNoNumber;
  int64_t sequence_number = kNoNumber;
  std::string_view dims, types, strides, inputs;  // JSON lists
  std::string_view grid, block;                   // JSON lists
  std::string_view call_stack;                    // "file(line): function;...", the innermost first
  std::string_view module_hierarchy;
  std::string_view kernel_flop, kernel_num_gb;  // numbers: what torch.compile says of a Triton kernel
  std::string_view metadata_name;               // of a process or a thread
  CollectiveArguments collective;
};

// Texts live as long as what was parsed. Names of fields and categories: libkineto's output_json.cpp and
// PyTorch's kineto_shim, 1.8 to 2.9, and of torch/autograd/profiler_util.py where PyTorch has no Kineto.
struct EventFields {
  enum class Kind : uint8_t {
    kOther,
    kOp,
    kRuntime,  // an API call, of a driver as well
    kKernel,
    kCopy,
    kMemset,
    kAnnotation,  // record_function, ProfilerStep#N
    kPython,      // a frame or a module
    kLaunchFlow,  // an arrow from an API call to what it started
    kPassFlow,    // an arrow from an op to its backward
    kMetadata,    // a name of a process or a thread
  };

  Kind kind = Kind::kOther;
  char phase = '\0';
  std::string_view name;
  std::string_view category;
  int64_t process = kNoNumber;  // kNoNumber: a text, such as "Spans"
  std::string_view process_text;
  int64_t thread = kNoNumber;
  int64_t start = kNoNumber;     // ns, from "baseTimeNanoseconds" where that is told
  int64_t duration = kNoNumber;  // ns
  int64_t flow_id = kNoNumber;   // the bits of an unsigned number

  // A number of the event is NaN, infinite or none, and was left out.
  bool has_bad_number = false;
};

struct Event : EventFields, EventArguments {};

// Not thread-safe. Reuses its memory from event to event.
class EventParser {
 public:
  EventParser();
  EventParser(const EventParser&) = delete;
  EventParser& operator=(const EventParser&) = delete;
  ~EventParser();

  // Calls visitor for the events of a text of them and commas, which may be overwritten from begin[-1] to
  // begin[size]; `padding` bytes after that may be read. Returns how many bytes it could follow: those of
  // whole events, up to one that is no JSON.
  size_t ParseBatch(char* begin, size_t size, size_t padding,
                    const std::function<void(const Event&, size_t offset)>& visitor);

  // `padding` bytes after the text may be read. False for what is no JSON object. *repaired: bytes that are
  // no UTF-8, or control characters in a string, were replaced.
  bool Parse(std::string_view text, size_t padding, Event* event, bool* repaired);

 private:
  struct Parser;

  const std::unique_ptr<Parser> parser_;
};

// Returns "12.345" microseconds, exact to the nanosecond; kNoNumber for what is none, NaN and infinities
// among them.
int64_t ParseMicroseconds(std::string_view number);

// Returns an integer, also in quotes; kNoNumber for what is none.
int64_t ParseInteger(std::string_view number);

}  // namespace ott::chrome_trace

#endif  // OTT_CORE_CHROME_TRACE_EVENT_PARSER_H_
