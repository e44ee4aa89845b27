#include "ott/core/profile/recorded_window.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ott {
namespace {

const EventRecord& At(const char* place) { return *reinterpret_cast<const EventRecord*>(place); }

const char* Extra(const EventRecord& record) { return reinterpret_cast<const char*>(&record + 1); }

const char* Texts(const EventRecord& record) {
  return Extra(record) + (record.type == EventRecord::kSlice ? sizeof(SliceOfTrack) : 0);
}

std::string_view Name(const EventRecord& record) {
  if (record.static_name != nullptr) return record.static_name;
  return std::string_view(Texts(record), record.name_size);
}

std::string_view Args(const EventRecord& record) {
  return std::string_view(Texts(record) + record.name_size, record.args_size);
}

const char* Next(const EventRecord& record) {
  const char* const end = Texts(record) + record.name_size + record.args_size;
  return end + (-reinterpret_cast<uintptr_t>(end) & 7);
}

bool IsBegin(const EventRecord& record) {
  return record.type == EventRecord::kBegin || record.type == EventRecord::kBeginFlowStart ||
         record.type == EventRecord::kBeginFlowFinish;
}

uint64_t Key(const EventRecord& record) {
  return record.type == EventRecord::kBegin || record.type == EventRecord::kEnd ? record.value : 0;
}

double Number(uint64_t bits) {
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
    case EventRecord::kBeginFlowStart:
      return {EventFlow::End::kStart, record.value};
    case EventRecord::kBeginFlowFinish:
      return {EventFlow::End::kFinish, record.value};
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

// Finds out what belongs together although it lies apart.
class RecordedWindow::Matcher : public Walker {
 public:
  void Range(const Segment&, const EventRecord& begin, uint64_t, bool) override { AddFlow(begin); }

  void Unfinished(const Segment&, const EventRecord& begin) override {
    AddFlow(begin);
    unfinished_.push_back(&begin);
  }

  void EndWithoutBegin(const Segment&, const EventRecord& end) override { ends_.push_back(&end); }

  void Other(const Segment&, const EventRecord& record) override { AddFlow(record); }

  void Finish(RecordedWindow& window) {
    const auto is_earlier = [](const EventRecord* a, const EventRecord* b) { return a->ticks < b->ticks; };
    std::sort(unfinished_.begin(), unfinished_.end(), is_earlier);
    std::sort(ends_.begin(), ends_.end(), is_earlier);
    std::unordered_map<uint64_t, std::vector<const EventRecord*>> open;
    auto begin = unfinished_.begin();
    for (const EventRecord* const end : ends_) {
      if (end->category != static_cast<uint32_t>(EventCategory::kMeasurement)) continue;
      for (; begin != unfinished_.end() && (*begin)->ticks <= end->ticks; ++begin) {
        if ((*begin)->category == end->category) open[Key(**begin)].push_back(*begin);
      }
      std::vector<const EventRecord*>& candidates = open[Key(*end)];
      if (candidates.empty()) continue;
      window.began_elsewhere_[end] = candidates.back();
      window.ended_elsewhere_.insert(candidates.back());
      candidates.pop_back();
    }
    const auto matched = static_cast<int64_t>(window.began_elsewhere_.size());
    window.num_unfinished_ = static_cast<int64_t>(unfinished_.size()) - matched;
    window.num_ends_without_begin_ = static_cast<int64_t>(ends_.size()) - matched;
    for (int category = 0; category < 16; ++category) {
      for (const uint64_t id : flow_starts_[category]) {
        if (flow_finishes_[category].count(id) != 0) window.flows_[category].insert(id);
      }
    }
  }

 private:
  void AddFlow(const EventRecord& record) {
    const EventFlow flow = FlowOf(record);
    if (flow.end == EventFlow::End::kStart) flow_starts_[record.category].insert(flow.id);
    if (flow.end == EventFlow::End::kFinish) flow_finishes_[record.category].insert(flow.id);
  }

  std::vector<const EventRecord*> unfinished_;
  std::vector<const EventRecord*> ends_;
  std::unordered_set<uint64_t> flow_starts_[16];
  std::unordered_set<uint64_t> flow_finishes_[16];
};

class RecordedWindow::Converter : public Walker {
 public:
  Converter(const RecordedWindow& window, const std::function<void(const TraceEvent&)>& visitor)
      : window_(window), visitor_(visitor) {}

  void Range(const Segment& segment, const EventRecord& begin, uint64_t end, bool overlaps) override {
    AddRange(segment, begin, end, overlaps, Args(begin));
  }

  void Unfinished(const Segment& segment, const EventRecord& begin) override {
    AddRange(segment, begin, segment.end, false, UnfinishedArgs(Args(begin)));
  }

  void EndWithoutBegin(const Segment& segment, const EventRecord& end) override {
    const auto found = window_.began_elsewhere_.find(&end);
    if (found != window_.began_elsewhere_.end()) {
      AddRange(segment, *found->second, end.ticks, true, Args(*found->second));
    }
  }

  void Other(const Segment& segment, const EventRecord& record) override {
    TraceEvent event = MakeEvent(segment, record);
    switch (record.type) {
      case EventRecord::kMark:
        event.type = TraceEvent::Type::kMark;
        break;
      case EventRecord::kCounter:
        event.type = TraceEvent::Type::kCounter;
        event.value = Number(record.value);
        break;
      case EventRecord::kSlice: {
        const SliceOfTrack slice = TrackOf(record);
        event.track = slice.track;
        event.start = slice.start_unix_nanoseconds - window_.opened_.unix_nanoseconds;
        event.duration = std::max<int64_t>(0, slice.end_unix_nanoseconds - slice.start_unix_nanoseconds);
        break;
      }
      default:
        return;
    }
    visitor_(event);
  }

  void AddLost(const Segment& segment, uint64_t ticks) {
    const std::string name = absl::StrCat(segment.num_lost, " events lost: the thread's buffer was full");
    TraceEvent event;
    event.type = TraceEvent::Type::kMark;
    event.process = window_.process_;
    event.track = segment.thread;
    event.name = name;
    event.category = "profiler";
    event.start = window_.ToNanoseconds(ticks);
    visitor_(event);
  }

 private:
  TraceEvent MakeEvent(const Segment& segment, const EventRecord& record) const {
    TraceEvent event;
    event.process = window_.process_;
    event.track = segment.thread;
    event.name = Name(record);
    event.category = EventCategoryName(static_cast<EventCategory>(record.category));
    event.args = Args(record);
    event.start = window_.ToNanoseconds(record.ticks);
    const EventFlow flow = FlowOf(record);
    if (flow.end != EventFlow::End::kNone && window_.flows_[record.category].count(flow.id) != 0) {
      event.flow = flow.end == EventFlow::End::kStart ? TraceEvent::Flow::kStart : TraceEvent::Flow::kFinish;
      event.flow_id = flow.id;
    }
    return event;
  }

  void AddRange(const Segment& segment, const EventRecord& begin, uint64_t end, bool overlaps,
                std::string_view args) {
    TraceEvent event = MakeEvent(segment, begin);
    if (overlaps) event.type = TraceEvent::Type::kOverlappingSlice;
    event.duration = std::max<int64_t>(0, window_.ToNanoseconds(end) - event.start);
    event.args = args;
    std::string with_domain;
    if (begin.category == static_cast<uint32_t>(EventCategory::kRange) && Key(begin) != 0) {
      with_domain = absl::StrCat(reinterpret_cast<const char*>(Key(begin)), ": ", std::string(event.name));
      event.name = with_domain;
    }
    visitor_(event);
  }

  const RecordedWindow& window_;
  const std::function<void(const TraceEvent&)>& visitor_;
};

RecordedWindow::RecordedWindow(const EventRecorder& recorder, int64_t process)
    : process_(process),
      opened_(recorder.opened()),
      closed_(recorder.closed()),
      track_names_(recorder.TrackNames()) {
  for (const EventRecorder::Buffer& buffer : recorder.Buffers()) AddSegments(buffer);
  Matcher matcher;
  for (const Segment& segment : segments_) Walk(segment, matcher);
  matcher.Finish(*this);
}

void RecordedWindow::AddSegments(const EventRecorder::Buffer& buffer) {
  num_lost_ += static_cast<int64_t>(buffer.num_lost);
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
    Segment& segment = segments_.back();
    if (record.type == EventRecord::kThreadEnd) segment.end = record.ticks;
    segment.records = std::string_view(segment.records.data(), Next(record) - segment.records.data());
  }
  if (!segments_.empty()) segments_.back().num_lost = buffer.num_lost;
}

void RecordedWindow::Walk(const Segment& segment, Walker& walker) const {
  std::vector<const EventRecord*> open;
  const char* const end = segment.records.data() + segment.records.size();
  for (const char* place = segment.records.data(); place < end; place = Next(At(place))) {
    const EventRecord& record = At(place);
    if (IsBegin(record)) {
      if (ended_elsewhere_.count(&record) == 0) open.push_back(&record);
    } else if (record.type == EventRecord::kEnd) {
      const auto begin = std::find_if(open.rbegin(), open.rend(), [&record](const EventRecord* candidate) {
        return candidate->category == record.category && Key(*candidate) == Key(record);
      });
      if (begin == open.rend()) {
        walker.EndWithoutBegin(segment, record);
        continue;
      }
      walker.Range(segment, **begin, record.ticks, begin != open.rbegin());
      open.erase(std::next(begin).base());
    } else {
      walker.Other(segment, record);
    }
  }
  for (; !open.empty(); open.pop_back()) walker.Unfinished(segment, *open.back());
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
  Converter converter(*this, visitor);
  for (const Segment& segment : segments_) {
    Walk(segment, converter);
    if (segment.num_lost > 0) converter.AddLost(segment, segment.end);
  }
}

// Between the two readings the cycle counter is taken to run evenly.
int64_t RecordedWindow::ToNanoseconds(uint64_t ticks) const {
  if (ticks <= opened_.ticks || closed_.ticks <= opened_.ticks) return 0;
  const auto since = static_cast<__int128>(std::min(ticks, closed_.ticks) - opened_.ticks);
  return static_cast<int64_t>(since * duration() / static_cast<__int128>(closed_.ticks - opened_.ticks));
}

}  // namespace ott
