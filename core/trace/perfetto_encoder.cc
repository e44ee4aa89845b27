// Field numbers are those of Perfetto's protos/perfetto/trace: trace_packet.proto, track_event/*.proto.

#include <cstring>
#include <unordered_map>
#include <vector>

#include "ott/core/base/utf8.h"
#include "ott/core/trace/trace_encoder.h"

namespace ott {
namespace {

namespace trace {
constexpr int kPacket = 1;
}
namespace packet {
constexpr int kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kTrackDescriptor = 60;
}
namespace descriptor {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8, kChildOrdering = 11,
              kSiblingOrderRank = 12, kProcessOrdering = 19;
constexpr int kExplicitChildOrdering = 3, kExplicitProcessOrdering = 1;
}  // namespace descriptor
namespace process_descriptor {
constexpr int kPid = 1, kName = 6, kLabels = 8;
}
namespace track_event {
constexpr int kAnnotations = 4, kType = 9, kTrack = 11, kCategories = 22, kName = 23, kDoubleValue = 44,
              kFlowIds = 47, kTerminatingFlowIds = 48;
constexpr int kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterValue = 4;
}  // namespace track_event
namespace annotation {
constexpr int kLegacyJson = 9, kName = 10;
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendTag(int field, int wire_type, std::string& out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type), out);
}

void AppendInteger(int field, uint64_t value, std::string& out) {
  AppendTag(field, 0, out);
  AppendVarint(value, out);
}

// A double or a fixed64.
template <typename Value>
void AppendEightBytes(int field, Value value, std::string& out) {
  static_assert(sizeof(value) == 8);
  char bytes[8];
  std::memcpy(bytes, &value, sizeof(bytes));
  AppendTag(field, 1, out);
  out.append(bytes, sizeof(bytes));
}

void AppendBytes(int field, std::string_view bytes, std::string& out) {
  AppendTag(field, 2, out);
  AppendVarint(bytes.size(), out);
  out += bytes;
}

void AppendText(int field, std::string_view text, std::string& out) {
  AppendBytes(field, ValidUtf8(text), out);
}

// Uuids of processes and their tracks are made of their numbers, those of others are counted.
uint64_t InProcess(int64_t process, uint64_t value) {
  return value ^ (static_cast<uint64_t>(process + 1) << 48);
}
uint64_t ProcessUuid(int64_t process) { return InProcess(process, uint64_t{1} << 47); }
uint64_t TrackUuid(int64_t process, int64_t track) {
  return InProcess(process, (uint64_t{1} << 46) + static_cast<uint64_t>(track));
}

// Spread over all bits (the constants are SplitMix64's), since ids of different processes are alike.
uint64_t FlowId(int64_t process, uint64_t id) {
  return id * 0xBF58476D1CE4E5B9 + static_cast<uint64_t>(process + 1) * 0x9E3779B97F4A7C15;
}

class PerfettoEncoder : public TraceEncoder {
 public:
  void Begin(std::string_view info, std::string& out) override {
    // The order of processes counts only if the root track says so.
    std::string root;
    AppendInteger(descriptor::kUuid, 0, root);
    AppendInteger(descriptor::kProcessOrdering, descriptor::kExplicitProcessOrdering, root);
    AddPacket(packet::kTrackDescriptor, root, nullptr, out);

    TraceEvent event;
    event.name = "trace info";
    event.args = info;
    std::string track;
    AppendInteger(descriptor::kUuid, next_uuid_, track);
    AppendBytes(descriptor::kName, event.name, track);
    AddPacket(packet::kTrackDescriptor, track, nullptr, out);
    AddEvent(track_event::kInstant, next_uuid_++, event, out);
  }

  void Add(const TraceProcess& process, std::string& out) override {
    std::string inner;
    // Not 0, which is the kernel's idle process.
    AppendInteger(process_descriptor::kPid, static_cast<uint64_t>(process.process + 1), inner);
    AppendText(process_descriptor::kName, process.name, inner);
    if (!process.labels.empty()) AppendText(process_descriptor::kLabels, process.labels, inner);
    std::string track;
    AppendInteger(descriptor::kUuid, ProcessUuid(process.process), track);
    AppendText(descriptor::kName, process.name, track);
    AppendBytes(descriptor::kProcess, inner, track);
    AppendInteger(descriptor::kChildOrdering, descriptor::kExplicitChildOrdering, track);
    AppendInteger(descriptor::kSiblingOrderRank, static_cast<uint64_t>(process.sort_index), track);
    AddPacket(packet::kTrackDescriptor, track, nullptr, out);
  }

  // Threads are tracks like any other: theirs is the only order that cannot be given.
  void Add(const TraceTrack& track, std::string& out) override {
    std::string encoded;
    AppendInteger(descriptor::kUuid, TrackUuid(track.process, track.track), encoded);
    AppendText(descriptor::kName, track.name, encoded);
    AppendInteger(descriptor::kParent, ProcessUuid(track.process), encoded);
    AppendInteger(descriptor::kSiblingOrderRank, static_cast<uint64_t>(track.sort_index), encoded);
    AddPacket(packet::kTrackDescriptor, encoded, nullptr, out);
  }

  void Add(const TraceEvent& event, std::string& out) override {
    const uint64_t track = TrackUuid(event.process, event.track);
    switch (event.type) {
      case TraceEvent::Type::kSlice:
        return AddSlice(track, event, out);
      case TraceEvent::Type::kOverlappingSlice:
        return AddSlice(FreeTrack(event, out), event, out);
      case TraceEvent::Type::kMark:
        return AddEvent(track_event::kInstant, track, event, out);
      case TraceEvent::Type::kCounter:
        return AddEvent(track_event::kCounterValue, CounterTrack(event, out), event, out);
    }
  }

  void End(std::string& out) override {
    for (auto& [track, ends] : open_) EndSlices(track, ends, nullptr, out);
  }

 private:
  // The ends of the slices that are open on a track, outermost first.
  using Ends = std::vector<int64_t>;

  uint64_t AddTrack(const TraceEvent& event, bool is_counter, std::string& out) {
    std::string track;
    AppendInteger(descriptor::kUuid, next_uuid_, track);
    AppendText(descriptor::kName, event.name, track);
    AppendInteger(descriptor::kParent, ProcessUuid(event.process), track);
    if (is_counter) AppendBytes(descriptor::kCounter, {}, track);
    AddPacket(packet::kTrackDescriptor, track, nullptr, out);
    return next_uuid_++;
  }

  static std::string Key(const TraceEvent& event) {
    return std::to_string(event.process) + ' ' + std::string(event.name);
  }

  uint64_t CounterTrack(const TraceEvent& event, std::string& out) {
    uint64_t& track = counters_[Key(event)];
    if (track == 0) track = AddTrack(event, true, out);
    return track;
  }

  // A track for slices of this name on which nothing else runs at the time.
  uint64_t FreeTrack(const TraceEvent& event, std::string& out) {
    std::vector<uint64_t>& tracks = overlapping_[Key(event)];
    for (const uint64_t track : tracks) {
      const Ends& ends = open_[track];
      if (ends.empty() || ends.front() <= event.start) return track;
    }
    tracks.push_back(AddTrack(event, false, out));
    return tracks.back();
  }

  void AddSlice(uint64_t track, const TraceEvent& event, std::string& out) {
    Ends& ends = open_[track];
    EndSlices(track, ends, &event.start, out);
    AddEvent(track_event::kSliceBegin, track, event, out);
    ends.push_back(event.start + event.duration);
  }

  // Those that end until then.
  void EndSlices(uint64_t track, Ends& ends, const int64_t* until, std::string& out) {
    for (; !ends.empty() && (until == nullptr || ends.back() <= *until); ends.pop_back()) {
      event_.clear();
      AppendInteger(track_event::kType, track_event::kSliceEnd, event_);
      AppendInteger(track_event::kTrack, track, event_);
      AddPacket(packet::kTrackEvent, event_, &ends.back(), out);
    }
  }

  void AddEvent(int type, uint64_t track, const TraceEvent& event, std::string& out) {
    event_.clear();
    AppendInteger(track_event::kType, static_cast<uint64_t>(type), event_);
    AppendInteger(track_event::kTrack, track, event_);
    if (!event.category.empty()) AppendText(track_event::kCategories, event.category, event_);
    if (type == track_event::kCounterValue) {
      AppendEightBytes(track_event::kDoubleValue, event.value, event_);
    } else {
      AppendText(track_event::kName, event.name, event_);
    }
    if (event.flow != TraceEvent::Flow::kNone) {
      const bool starts = event.flow == TraceEvent::Flow::kStart;
      AppendEightBytes(starts ? track_event::kFlowIds : track_event::kTerminatingFlowIds,
                       FlowId(event.process, event.flow_id), event_);
    }
    if (!event.args.empty()) {
      std::string args;
      AppendBytes(annotation::kName, "args", args);
      AppendText(annotation::kLegacyJson, event.args, args);
      AppendBytes(track_event::kAnnotations, args, event_);
    }
    AddPacket(packet::kTrackEvent, event_, &event.start, out);
  }

  void AddPacket(int field, const std::string& content, const int64_t* time, std::string& out) {
    packet_.clear();
    if (time != nullptr) AppendInteger(packet::kTimestamp, static_cast<uint64_t>(*time), packet_);
    AppendInteger(packet::kSequenceId, 1, packet_);
    AppendBytes(field, content, packet_);
    AppendBytes(trace::kPacket, packet_, out);
  }

  uint64_t next_uuid_ = 1;
  std::unordered_map<uint64_t, Ends> open_;
  // By process and name.
  std::unordered_map<std::string, uint64_t> counters_;
  std::unordered_map<std::string, std::vector<uint64_t>> overlapping_;
  // Kept for their memory.
  std::string packet_;
  std::string event_;
};

}  // namespace

std::unique_ptr<TraceEncoder> NewPerfettoEncoder() { return std::make_unique<PerfettoEncoder>(); }

}  // namespace ott
