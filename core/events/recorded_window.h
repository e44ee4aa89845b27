// Reads what an EventRecorder has recorded as the events of a trace.

#ifndef OTT_CORE_EVENTS_RECORDED_WINDOW_H_
#define OTT_CORE_EVENTS_RECORDED_WINDOW_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ott/core/events/event_recorder.h"
#include "ott/core/events/trace_event.h"

namespace ott {

// Finds the end of each range. Ranges that overlap without nesting, or end on another thread than they began
// on, become overlapping slices; ranges that never end go on to the end of their thread or of the window and
// have the argument "unfinished". Time 0 is the opening of the window.
//
// Not thread-safe. The recorder must stay closed meanwhile.
//
//   const RecordedWindow window(recorder, rank);
//   for (const TraceTrack& track : window.Tracks()) file->Add(track);
//   window.Visit([&](const TraceEvent& event) { file->Add(event); });
class RecordedWindow {
 public:
  explicit RecordedWindow(const EventRecorder& recorder, int64_t process = 0);

  std::vector<TraceTrack> Tracks() const;
  // Visits thread by thread, in the order of the ranges' beginnings. What an event refers to lives until the
  // visitor returns.
  void Visit(const std::function<void(const TraceEvent&)>& visitor) const;

  // Returns nanoseconds.
  int64_t duration() const { return closed_.steady_nanoseconds - opened_.steady_nanoseconds; }
  ClockReading opened() const { return opened_; }
  ClockReading closed() const { return closed_; }

  int64_t num_lost_events() const { return num_lost_; }
  int64_t num_unfinished_ranges() const { return num_unfinished_; }
  // Ends of ranges that began before the window.
  int64_t num_ends_without_begin() const { return num_ends_without_begin_; }

 private:
  // A thread's part of a buffer, which threads use one after the other.
  struct Segment {
    int64_t thread = 0;
    std::string_view name;
    // Its records.
    std::string_view records;
    // When the thread or the window ended.
    uint64_t end = 0;
    uint64_t num_lost = 0;
  };

  // Null if it is missing.
  struct FlowEnds {
    const EventRecord* start = nullptr;
    const EventRecord* finish = nullptr;
  };

  void AddSegments(const EventRecorder::Buffer& buffer);
  // Finds out what belongs together although it lies apart.
  void Match();
  template <typename Visitor>
  void VisitRecords(const Segment& segment, Visitor visitor) const;
  // Returns false for what is no event.
  bool Convert(const Segment& segment, const EventRecord& record, TraceEvent& event) const;
  int64_t ToNanoseconds(uint64_t ticks) const;

  const int64_t process_;
  const ClockReading opened_;
  const ClockReading closed_;
  const std::vector<std::string> track_names_;
  std::vector<Segment> segments_;
  int64_t num_lost_ = 0;
  int64_t num_unfinished_ = 0;
  int64_t num_ends_without_begin_ = 0;
  // Measurements that ended on another thread than they began on, and when.
  std::unordered_map<const EventRecord*, uint64_t> ended_elsewhere_;
  // By id. Of several starts the last counts, which is the innermost operation, and of several finishes the
  // first.
  std::unordered_map<uint64_t, FlowEnds> flows_;
};

}  // namespace ott

#endif  // OTT_CORE_EVENTS_RECORDED_WINDOW_H_
