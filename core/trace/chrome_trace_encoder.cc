#include <charconv>
#include <cmath>
#include <type_traits>

#include "ott/core/json/json_string.h"
#include "ott/core/trace/trace_encoder.h"

namespace ott {
namespace {

// "nan", "inf", "-inf", or the shortest decimal that is the same number.
std::string NumberText(double value) {
  if (std::isnan(value)) return "nan";
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

template <typename Integer>
void AppendInteger(Integer value, std::string& out, int base = 10) {
  static_assert(std::is_integral_v<Integer>);
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), value, base).ptr);
}

void AppendMicroseconds(int64_t nanoseconds, std::string& out) {
  uint64_t magnitude = static_cast<uint64_t>(nanoseconds);
  if (nanoseconds < 0) {
    out += '-';
    magnitude = -magnitude;
  }
  AppendInteger(magnitude / 1000, out);
  out += '.';
  out += static_cast<char>('0' + magnitude / 100 % 10);
  out += static_cast<char>('0' + magnitude / 10 % 10);
  out += static_cast<char>('0' + magnitude % 10);
}

class ChromeTraceEncoder : public TraceEncoder {
 public:
  void Begin(std::string_view info, std::string& out) override {
    out += R"({"displayTimeUnit":"ns","otherData":)";
    out += info;
    out += R"(,"traceEvents":[)";
  }

  void Add(const TraceProcess& process, std::string& out) override {
    AddMetadata("process_name", process.process, nullptr, process.name, out);
    if (!process.labels.empty()) {
      AddMetadata("process_labels", process.process, nullptr, process.labels, out);
    }
    AddMetadata("process_sort_index", process.process, nullptr, process.sort_index, out);
  }

  void Add(const TraceTrack& track, std::string& out) override {
    AddMetadata("thread_name", track.process, &track.track, track.name, out);
    AddMetadata("thread_sort_index", track.process, &track.track, track.sort_index, out);
  }

  void Add(const TraceEvent& event, std::string& out) override {
    switch (event.type) {
      case TraceEvent::Type::kSlice:
        Open("X", event, event.start, out);
        out += R"(,"dur":)";
        AppendMicroseconds(event.duration, out);
        Close(event.args, out);
        return AddFlow(event, out);
      case TraceEvent::Type::kOverlappingSlice:
        Open("b", event, event.start, out);
        AppendId(++num_overlapping_, out);
        Close(event.args, out);
        Open("e", event, event.start + event.duration, out);
        AppendId(num_overlapping_, out);
        return Close({}, out);
      case TraceEvent::Type::kMark:
        Open("i", event, event.start, out);
        out += R"(,"s":"t")";
        return Close(event.args, out);
      case TraceEvent::Type::kCounter:
        return AddCounter(event, out);
    }
  }

  void End(std::string& out) override { out += "\n]}\n"; }

 private:
  void Separate(std::string& out) {
    out += is_first_ ? "\n" : ",\n";
    is_first_ = false;
  }

  void Open(const char* phase, const TraceEvent& event, int64_t time, std::string& out) {
    Separate(out);
    out += R"({"ph":")";
    out += phase;
    out += R"(","name":)";
    AppendJsonString(event.name, out);
    out += R"(,"cat":)";
    AppendJsonString(event.category, out);
    out += R"(,"pid":)";
    AppendInteger(event.process, out);
    out += R"(,"tid":)";
    AppendInteger(event.track, out);
    out += R"(,"ts":)";
    AppendMicroseconds(time, out);
  }

  static void Close(std::string_view args, std::string& out) {
    if (!args.empty()) {
      out += R"(,"args":)";
      out += args;
    }
    out += '}';
  }

  static void AppendId(uint64_t id, std::string& out) {
    out += R"(,"id":"0x)";
    AppendInteger(id, out, 16);
    out += '"';
  }

  // Viewers join what has the same id, name and category, in whatever process.
  void AddFlow(TraceEvent event, std::string& out) {
    if (event.flow == TraceEvent::Flow::kNone) return;
    const bool starts = event.flow == TraceEvent::Flow::kStart;
    const std::string name = "flow in process " + std::to_string(event.process);
    event.name = name;
    event.category = "flow";
    Open(starts ? "s" : "f", event, event.start, out);
    AppendId(event.flow_id, out);
    // It ends at the slice around it instead of at the next one.
    if (!starts) out += R"(,"bp":"e")";
    Close({}, out);
  }

  void AddCounter(const TraceEvent& event, std::string& out) {
    const std::string value = NumberText(event.value);
    if (std::isfinite(event.value)) {
      Open("C", event, event.start, out);
      return Close(R"({"value":)" + value + "}", out);
    }
    TraceEvent mark = event;
    const std::string name = std::string(event.name) + " = " + value;
    mark.type = TraceEvent::Type::kMark;
    mark.name = name;
    Add(mark, out);
  }

  template <typename Value>
  void AddMetadata(const char* what, int64_t process, const int64_t* track, const Value& value,
                   std::string& out) {
    Separate(out);
    out += R"({"ph":"M","name":")";
    out += what;
    out += R"(","pid":)";
    AppendInteger(process, out);
    if (track != nullptr) {
      out += R"(,"tid":)";
      AppendInteger(*track, out);
    }
    const std::string_view key = what;
    out += R"(,"args":{")";
    out += key.substr(key.find('_') + 1);
    out += R"(":)";
    if constexpr (std::is_integral_v<Value>) {
      AppendInteger(value, out);
    } else {
      AppendJsonString(value, out);
    }
    out += "}}";
  }

  bool is_first_ = true;
  uint64_t num_overlapping_ = 0;
};

}  // namespace

std::unique_ptr<TraceEncoder> NewChromeTraceEncoder() { return std::make_unique<ChromeTraceEncoder>(); }

}  // namespace ott
