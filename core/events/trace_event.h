// The events of a trace, whatever its file format.

#ifndef OTT_CORE_EVENTS_TRACE_EVENT_H_
#define OTT_CORE_EVENTS_TRACE_EVENT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace ott {

// Times are nanoseconds from the beginning of the trace.
struct TraceEvent {
  enum class Type {
    // On its track it lies inside of other slices or beside them.
    kSlice,
    // A slice that overlaps others; viewers give it a track of its own.
    kOverlappingSlice,
    kMark,
    kCounter,
  };
  // An arrow to or from the beginning of a slice.
  enum class Flow { kNone, kStart, kFinish };

  Type type = Type::kSlice;
  // A rank.
  int64_t process = 0;
  // A thread's id or another track's number.
  int64_t track = 0;
  // Any bytes.
  std::string_view name;
  std::string_view category;
  int64_t start = 0;
  int64_t duration = 0;
  // A JSON object, or nothing.
  std::string_view args;
  // The value of a counter.
  double value = 0;
  Flow flow = Flow::kNone;
  // The same at both ends of an arrow, and at no other of the process.
  uint64_t flow_id = 0;
};

// Viewers show processes, and their tracks, in the order of sort_index.
struct TraceProcess {
  int64_t process = 0;
  std::string name;
  // Shown beside the name.
  std::string labels;
  int64_t sort_index = 0;
};

struct TraceTrack {
  int64_t process = 0;
  int64_t track = 0;
  std::string name;
  int64_t sort_index = 0;
};

}  // namespace ott

#endif  // OTT_CORE_EVENTS_TRACE_EVENT_H_
