#include "ott/core/events/recorded_window.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "absl/strings/str_cat.h"

namespace ott {
namespace {

const EventRecord& At(const char* place) { return *reinterpret_cast<const EventRecord*>(place); }

const char* Extra(const EventRecord& record) { return reinterpret_cast<const char*>(&record + 1); }

size_t ExtraSize(const EventRecord& record) {
  switch (record.type) {
    case EventRecord::kRangeOfDomain:
    case EventRecord::kRangeFlowStart:
    case EventRecord::kRangeFlowFinish:
      return sizeof(uint64_t);
    case EventRecord::kSlice:
      return sizeof(SliceOfTrack);
    default:
      return 0;
  }
}

std::string_view Name(const EventRecord& record) {
  if (record.static_name != nullptr) return record.static_name;
  return std::string_view(Extra(record) + ExtraSize(record), record.name_size);
}

std::string_view Args(const EventRecord& record) {
  return std::string_view(Extra(record) + ExtraSize(record) + record.name_size, record.args_size);
}

const char* Next(const EventRecord& record) {
  const char* const end = Args(record).data() + record.args_size;
  return end + (-reinterpret_cast<uintptr_t>(end) & 7);
}

bool IsRange(const EventRecord& record) {
  return record.type >= EventRecord::kRange && record.type <= EventRecord::kRangeFlowFinish;
}

uint64_t Value(const EventRecord& record) { return record.value.load(std::memory_order_relaxed); }

uint64_t Number(const EventRecord& record) {
  uint64_t number;
  std::memcpy(&number, Extra(record), sizeof(number));
  return number;
}

double Double(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

SliceOfTrack TrackOf(const EventRecord& record) {
  SliceOfTrack slice;
  std::memcpy(&slice, Extra(record), sizeof(slice));
  return slice;
}

EventFlow FlowOf(const EventRecord& record) {
  switch (record.type) {
    case EventRecord::kRangeFlowStart:
      return {EventFlow::End::kStart, Number(record)};
    case EventRecord::kRangeFlowFinish:
      return {EventFlow::End::kFinish, Number(record)};
    case EventRecord::kSlice:
      return {static_cast<EventFlow::End>(TrackOf(record).flow_end), TrackOf(record).flow_id};
    default:
      return {};
  }
}

// {"unfinished":true} and what else there is.
std::string UnfinishedArgs(std::string_view args) {
  const size_t inner = args.find_first_not_of(" \t\n{");
  const bool has_others = inner != std::string_view::npos && args[inner] != '}';
  return absl::StrCat("{\"unfinished\":true", has_others ? "," : "}",
                      has_others ? std::string(args.substr(args.find('{') + 1)) : "");
}

}  // namespace

RecordedWindow::RecordedWindow(const EventRecorder& recorder, int64_t process)
    : process_(process),
      opened_(recorder.opened()),
      closed_(recorder.closed()),
      track_names_(recorder.TrackNames()) {
  for (const EventRecorder::Buffer& buffer : recorder.Buffers()) AddSegments(buffer);
  Match();
}

void RecordedWindow::AddSegments(const EventRecorder::Buffer& buffer) {
  num_lost_ += static_cast<int64_t>(buffer.num_lost);
  const size_t first = segments_.size();
  const char* const end = buffer.records.data() + buffer.records.size();
  for (const char* place = buffer.records.data(); place < end; place = Next(At(place))) {
    const EventRecord& record = At(place);
    if (record.type == EventRecord::kThread) {
      Segment& segment = segments_.emplace_back();
      segment.thread = static_cast<int64_t>(record.value);
      segment.name = Name(record);
      segment.end = closed_.ticks;
      segment.records = std::string_view(Next(record), 0);
      continue;
    }
    // Not even the thread fitted.
    if (segments_.size() == first) return;
    Segment& segment = segments_.back();
    if (record.type == EventRecord::kThreadEnd) segment.end = record.ticks;
    segment.records = std::string_view(segment.records.data(), Next(record) - segment.records.data());
  }
  if (segments_.size() > first) segments_.back().num_lost = buffer.num_lost;
}

template <typename Visitor>
void RecordedWindow::VisitRecords(const Segment& segment, Visitor visitor) const {
  const char* const end = segment.records.data() + segment.records.size();
  for (const char* place = segment.records.data(); place < end; place = Next(At(place))) visitor(At(place));
}

void RecordedWindow::Match() {
  std::vector<const EventRecord*> open;
  std::vector<const EventRecord*> ends;
  for (const Segment& segment : segments_) {
    VisitRecords(segment, [&](const EventRecord& record) {
      if (IsRange(record) && Value(record) == 0) open.push_back(&record);
      if (record.type == EventRecord::kEnd) ends.push_back(&record);
      const EventFlow flow = FlowOf(record);
      if (flow.end == EventFlow::End::kNone) return;
      FlowEnds& ends_of_flow = flows_[flow.id];
      if (flow.end == EventFlow::End::kStart) {
        ends_of_flow.start = &record;
      } else if (ends_of_flow.finish == nullptr) {
        ends_of_flow.finish = &record;
      }
    });
  }
  // The key of a measurement is the address of its name.
  const auto is_earlier = [](const EventRecord* a, const EventRecord* b) { return a->ticks < b->ticks; };
  std::sort(open.begin(), open.end(), is_earlier);
  std::sort(ends.begin(), ends.end(), is_earlier);
  std::unordered_map<uint64_t, std::vector<const EventRecord*>> by_key;
  auto begin = open.begin();
  for (const EventRecord* const end : ends) {
    if (end->category != static_cast<uint32_t>(EventCategory::kMeasurement)) continue;
    for (; begin != open.end() && (*begin)->ticks <= end->ticks; ++begin) {
      if ((*begin)->category == end->category) {
        by_key[reinterpret_cast<uintptr_t>((*begin)->static_name)].push_back(*begin);
      }
    }
    std::vector<const EventRecord*>& candidates = by_key[Value(*end)];
    if (candidates.empty()) continue;
    ended_elsewhere_[candidates.back()] = end->ticks;
    candidates.pop_back();
  }
  num_unfinished_ = static_cast<int64_t>(open.size() - ended_elsewhere_.size());
  num_ends_without_begin_ = static_cast<int64_t>(ends.size() - ended_elsewhere_.size());
}

std::vector<TraceTrack> RecordedWindow::Tracks() const {
  std::vector<TraceTrack> result;
  std::unordered_set<int64_t> seen;
  for (const Segment& segment : segments_) {
    if (!seen.insert(segment.thread).second) continue;
    // The main thread first.
    const int64_t index = segment.thread == getpid() ? 0 : static_cast<int64_t>(seen.size());
    result.push_back({process_, segment.thread, std::string(segment.name), index});
  }
  for (size_t i = 0; i < track_names_.size(); ++i) {
    const int64_t track = EventRecorder::kFirstTrack + static_cast<int64_t>(i);
    result.push_back({process_, track, track_names_[i], track});
  }
  return result;
}

void RecordedWindow::Visit(const std::function<void(const TraceEvent&)>& visitor) const {
  for (const Segment& segment : segments_) {
    VisitRecords(segment, [&](const EventRecord& record) {
      TraceEvent event;
      if (!Convert(segment, record, event)) return;
      // The views refer to these.
      std::string name, args;
      if (record.type == EventRecord::kRangeOfDomain) {
        event.name = name =
            absl::StrCat(reinterpret_cast<const char*>(Number(record)), ": ", std::string(event.name));
      }
      if (IsRange(record) && Value(record) == 0 && ended_elsewhere_.count(&record) == 0) {
        event.args = args = UnfinishedArgs(event.args);
      }
      visitor(event);
    });
    if (segment.num_lost == 0) continue;
    const std::string name =
        absl::StrCat(segment.num_lost, " events lost: the thread's buffer was full, or they lay too deep");
    TraceEvent event;
    event.type = TraceEvent::Type::kMark;
    event.process = process_;
    event.track = segment.thread;
    event.name = name;
    event.category = "profiler";
    event.start = ToNanoseconds(segment.end);
    visitor(event);
  }
}

bool RecordedWindow::Convert(const Segment& segment, const EventRecord& record, TraceEvent& event) const {
  event.process = process_;
  event.track = segment.thread;
  event.name = Name(record);
  event.category = EventCategoryName(static_cast<EventCategory>(record.category));
  event.args = Args(record);
  event.start = ToNanoseconds(record.ticks);
  if (const EventFlow flow = FlowOf(record); flow.end != EventFlow::End::kNone) {
    const FlowEnds& ends = flows_.at(flow.id);
    const bool is_end = &record == ends.start || &record == ends.finish;
    if (is_end && ends.start != nullptr && ends.finish != nullptr) {
      event.flow = &record == ends.start ? TraceEvent::Flow::kStart : TraceEvent::Flow::kFinish;
      event.flow_id = flow.id;
    }
  }
  switch (record.type) {
    case EventRecord::kMark:
      event.type = TraceEvent::Type::kMark;
      return true;
    case EventRecord::kCounter:
      event.type = TraceEvent::Type::kCounter;
      event.value = Double(Value(record));
      return true;
    case EventRecord::kSlice: {
      const SliceOfTrack slice = TrackOf(record);
      event.track = slice.track;
      event.start = slice.start_unix_nanoseconds - opened_.unix_nanoseconds;
      event.duration = std::max<int64_t>(0, slice.end_unix_nanoseconds - slice.start_unix_nanoseconds);
      return true;
    }
    case EventRecord::kThread:
    case EventRecord::kThreadEnd:
    case EventRecord::kEnd:
      return false;
    default:
      break;
  }
  uint64_t end = Value(record);
  bool overlaps = (end & EventRecord::kOverlaps) != 0;
  end &= ~EventRecord::kOverlaps;
  if (end == 0) {
    const auto elsewhere = ended_elsewhere_.find(&record);
    overlaps = elsewhere != ended_elsewhere_.end();
    end = overlaps ? elsewhere->second : segment.end;
  }
  if (overlaps) event.type = TraceEvent::Type::kOverlappingSlice;
  event.duration = std::max<int64_t>(0, ToNanoseconds(end) - event.start);
  return true;
}

// Between the two readings the cycle counter is taken to run evenly.
int64_t RecordedWindow::ToNanoseconds(uint64_t ticks) const {
  if (ticks <= opened_.ticks || closed_.ticks <= opened_.ticks) return 0;
  const auto since = static_cast<__int128>(std::min(ticks, closed_.ticks) - opened_.ticks);
  return static_cast<int64_t>(since * duration() / static_cast<__int128>(closed_.ticks - opened_.ticks));
}

}  // namespace ott
