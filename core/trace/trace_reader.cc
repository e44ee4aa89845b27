#include "ott/core/trace/trace_reader.h"

#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/chrome_trace/byte_source.h"
#include "ott/core/chrome_trace/read_events.h"
#include "ott/core/json/json_cursor.h"

namespace ott {
namespace {

bool IsObject(std::string_view text) {
  std::string_view value;
  return !text.empty() && text[0] == '{' && JsonCursor(text, JsonDialect::kStrict).Value(&value);
}

double Number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int64_t Integer(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int64_t OrZero(int64_t number) { return number == chrome_trace::kNoNumber ? 0 : number; }

class TraceBuilder {
 public:
  explicit TraceBuilder(Trace& trace) : trace_(trace) {}

  void Add(const chrome_trace::Event& from) {
    TraceEvent event;
    event.process = OrZero(from.process);
    event.track = OrZero(from.thread);
    event.start = OrZero(from.start);
    event.duration = OrZero(from.duration);
    const auto id = static_cast<uint64_t>(OrZero(from.flow_id));
    switch (from.phase) {
      case 'X':
        return trace_.events.push_back(WithTexts(event, from));
      case 'b':
        overlapping_[{event.process, id}] = WithTexts(event, from);
        return;
      case 'e':
        return AddOverlapping({event.process, id}, event.start);
      case 'i':
        event.type = TraceEvent::Type::kMark;
        return trace_.events.push_back(WithTexts(event, from));
      case 'C':
        event.type = TraceEvent::Type::kCounter;
        event.name = Kept(from.name);
        event.category = Kept(from.category);
        event.value = Number(Member(from.all, "value"));
        return trace_.events.push_back(event);
      case 's':
      case 'f':
        return AddFlow(from.phase, id, event);
      case 'M':
        return AddMetadata(event, from);
    }
  }

 private:
  TraceEvent WithTexts(TraceEvent event, const chrome_trace::Event& from) {
    event.name = Kept(from.name);
    event.category = Kept(from.category);
    if (IsObject(from.all)) event.args = Kept(from.all);
    return event;
  }

  // Names and most arguments come again and again.
  std::string_view Kept(std::string_view text) {
    const absl::string_view key(text.data(), text.size());
    const auto known = kept_.find(key);
    if (known != kept_.end()) return {known->data(), known->size()};
    const std::string& copy = trace_.texts.emplace_back(text);
    kept_.insert(copy);
    return copy;
  }

  void AddOverlapping(std::pair<int64_t, uint64_t> id, int64_t end) {
    const auto found = overlapping_.find(id);
    if (found == overlapping_.end()) return;
    TraceEvent event = found->second;
    event.type = TraceEvent::Type::kOverlappingSlice;
    event.duration = end - event.start;
    trace_.events.push_back(event);
    overlapping_.erase(found);
  }

  void AddFlow(char phase, uint64_t id, const TraceEvent& flow) {
    if (trace_.events.empty()) return;
    TraceEvent& event = trace_.events.back();
    if (event.process != flow.process || event.track != flow.track || event.start != flow.start) return;
    event.flow = phase == 's' ? TraceEvent::Flow::kStart : TraceEvent::Flow::kFinish;
    event.flow_id = id;
  }

  // A track's name comes before its index.
  void AddMetadata(const TraceEvent& event, const chrome_trace::Event& from) {
    if (from.name == "thread_name") {
      trace_.tracks.push_back({event.process, event.track, std::string(from.metadata_name), event.track});
    } else if (from.name == "thread_sort_index" && !trace_.tracks.empty() &&
               trace_.tracks.back().track == event.track) {
      trace_.tracks.back().sort_index = Integer(Member(from.all, "sort_index"));
    }
  }

  static std::string_view Member(std::string_view object, std::string_view name) {
    JsonCursor cursor(object, JsonDialect::kLenient);
    std::string_view result;
    cursor.Object([&](std::string_view key) {
      std::string_view value;
      if (!cursor.Value(&value)) return false;
      if (key == name) result = value;
      return true;
    });
    return result;
  }

  Trace& trace_;
  absl::flat_hash_set<absl::string_view> kept_;
  std::map<std::pair<int64_t, uint64_t>, TraceEvent> overlapping_;
};

absl::StatusOr<Trace> Read(chrome_trace::ByteSource& source, const std::string& path) {
  Trace trace;
  TraceBuilder builder(trace);
  const chrome_trace::Reading reading =
      chrome_trace::ReadEvents(source, {[&](const chrome_trace::Event& event) { builder.Add(event); },
                                        [&](std::string_view name, std::string_view json) {
                                          // A trace of others, or of `ott trace`, says other things here.
                                          if (name == "otherData")
                                            JsonToProto(json, &trace.info).IgnoreError();
                                        }});
  if (!reading.began || (reading.num_events == 0 && !reading.cut.empty())) {
    return absl::DataLossError(absl::StrCat(
        path, ": no trace: ",
        reading.began ? reading.cut : absl::StrCat("begins with neither { nor [", source.error())));
  }
  if (!reading.cut.empty()) {
    trace.cut = absl::StrCat(path, ": ", reading.cut);
  } else if (reading.num_left_out > 0) {
    trace.cut = absl::StrCat(path, ": damaged: ", absl::StrJoin(reading.notes, "; "));
  }
  return trace;
}

}  // namespace

absl::StatusOr<Trace> ParseTrace(std::string_view text, const std::string& path) {
  return Read(*chrome_trace::ByteSource::OfText(text), path);
}

absl::StatusOr<TraceInfo> ReadTraceInfo(const std::string& path) {
  OTT_RETURN_IF_ERROR(CheckIsHere(path));
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<chrome_trace::ByteSource> source,
                       chrome_trace::ByteSource::Open(path));
  TraceInfo info;
  chrome_trace::ReadMembersBeforeEvents(*source, [&](std::string_view name, std::string_view json) {
    if (name == "otherData") JsonToProto(json, &info).IgnoreError();
  });
  return info;
}

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<chrome_trace::ByteSource> source,
                       chrome_trace::ByteSource::Open(path));
  return Read(*source, path);
}

}  // namespace ott
