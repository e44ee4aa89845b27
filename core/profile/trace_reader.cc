#include "ott/core/profile/trace_reader.h"

#include <zlib.h>

#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/json/json_cursor.h"
#include "ott/core/json/json_string.h"

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

// Microseconds in decimal; exact up to three decimals. 0 for what is out of range.
int64_t Nanoseconds(std::string_view text) {
  // Sums of two must not overflow.
  constexpr int64_t kMax = 4'000'000'000'000'000'000;
  const bool negative = !text.empty() && text[0] == '-';
  int64_t result = 0;
  int64_t scale = 1000;
  bool is_exact = true;
  bool after_point = false;
  for (const char c : text.substr(negative ? 1 : 0)) {
    if (c == '.' && !after_point) {
      after_point = true;
    } else if (c < '0' || c > '9' || (scale > 1 && result >= kMax / 10)) {
      is_exact = false;
      break;
    } else if (scale > 1) {
      result = result * 10 + (c - '0');
      if (after_point) scale /= 10;
    }
  }
  if (is_exact && result <= kMax / scale) return (negative ? -result : result) * scale;
  // An exponent, say.
  const double value = Number(text) * 1000;
  return std::abs(value) < static_cast<double>(kMax) ? std::llround(value) : 0;
}

std::string_view Unquoted(std::string_view value) {
  return value.size() >= 2 && value[0] == '"' ? value.substr(1, value.size() - 2) : value;
}

// "0x1f" or 31, with or without quotes.
uint64_t Id(std::string_view value) {
  value = Unquoted(value);
  const bool is_hex = absl::StartsWith(absl::string_view(value.data(), value.size()), "0x");
  uint64_t id = 0;
  std::from_chars(value.data() + (is_hex ? 2 : 0), value.data() + value.size(), id, is_hex ? 16 : 10);
  return id;
}

class TraceParser {
 public:
  TraceParser(std::string_view text, Trace& trace) : cursor_(text, JsonDialect::kLenient), trace_(trace) {}

  // False where the text stops being a trace, at position().
  bool Parse() {
    if (cursor_.Peek() == '[') return cursor_.List([this] { return Event(); });
    return cursor_.Object([this](std::string_view key) {
      if (key == "traceEvents") return cursor_.List([this] { return Event(); });
      std::string_view value;
      if (!cursor_.Value(&value)) return false;
      // Of another's trace, or of `ott trace`, other things are said.
      if (key == "otherData") JsonToProto(value, &trace_.info).IgnoreError();
      return true;
    });
  }

  size_t position() const { return cursor_.position(); }
  bool at_end() const { return cursor_.at_end(); }

 private:
  bool Event() {
    TraceEvent event;
    std::string_view phase, name, category, args, id;
    const bool whole = cursor_.Object([&](std::string_view key) {
      std::string_view value;
      if (!cursor_.Value(&value)) return false;
      if (key == "ph") {
        phase = Unquoted(value);
      } else if (key == "name") {
        name = Unquoted(value);
      } else if (key == "cat") {
        category = Unquoted(value);
      } else if (key == "args") {
        args = value;
      } else if (key == "id") {
        id = value;
      } else if (key == "pid") {
        event.process = Integer(Unquoted(value));
      } else if (key == "tid") {
        event.track = Integer(Unquoted(value));
      } else if (key == "ts") {
        event.start = Nanoseconds(value);
      } else if (key == "dur") {
        event.duration = Nanoseconds(value);
      }
      return true;
    });
    if (!whole) return false;
    event.name = Text(name);
    event.category = Text(category);
    if (IsObject(args)) event.args = args;
    Add(phase.size() == 1 ? phase[0] : '\0', id, event);
    return true;
  }

  void Add(char phase, std::string_view id, TraceEvent& event) {
    switch (phase) {
      case 'X':
        return trace_.events.push_back(event);
      case 'b':
        overlapping_[{event.process, Id(id)}] = event;
        return;
      case 'e':
        return AddOverlapping({event.process, Id(id)}, event.start);
      case 'i':
        event.type = TraceEvent::Type::kMark;
        return trace_.events.push_back(event);
      case 'C':
        event.type = TraceEvent::Type::kCounter;
        event.value = Number(Member(event.args, "value"));
        event.args = {};
        return trace_.events.push_back(event);
      case 's':
      case 'f':
        return AddFlow(phase, Id(id), event);
      case 'M':
        return AddMetadata(event);
    }
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
  void AddMetadata(const TraceEvent& event) {
    if (event.name == "thread_name") {
      trace_.tracks.push_back(
          {event.process, event.track, UnescapedJson(Unquoted(Member(event.args, "name"))), event.track});
    } else if (event.name == "thread_sort_index" && !trace_.tracks.empty() &&
               trace_.tracks.back().track == event.track) {
      trace_.tracks.back().sort_index = Integer(Member(event.args, "sort_index"));
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

  std::string_view Text(std::string_view raw) {
    if (raw.find('\\') == std::string_view::npos) return raw;
    return trace_.unescaped.emplace_back(UnescapedJson(raw));
  }

  JsonCursor cursor_;
  Trace& trace_;
  std::map<std::pair<int64_t, uint64_t>, TraceEvent> overlapping_;
};

// Up to `limit` bytes, as far as they can be unpacked; *error says if that is not to the end.
std::string Gunzip(std::string_view packed, size_t limit, std::string* error) {
  std::string result;
  z_stream stream{};
  inflateInit2(&stream, MAX_WBITS + 16);
  const auto end = absl::MakeCleanup([&stream] { inflateEnd(&stream); });
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  size_t left = packed.size();
  std::string block(size_t{1} << 18, '\0');
  int status = Z_OK;
  while (status == Z_OK && result.size() < limit) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min(left, size_t{1} << 30));
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    result.append(block.data(), block.size() - stream.avail_out);
  }
  if (status != Z_STREAM_END) *error = status == Z_BUF_ERROR ? "truncated" : "no gzip, or damaged";
  return result;
}

}  // namespace

absl::StatusOr<Trace> ParseTrace(std::string_view text, const std::string& path) {
  Trace trace;
  TraceParser parser(text, trace);
  if (parser.Parse()) return trace;
  if (parser.position() == 0 || (trace.events.empty() && trace.tracks.empty())) {
    return absl::DataLossError(absl::StrCat(path, ": no trace: byte ", parser.position(), " of ", text.size(),
                                            parser.at_end() ? " is the end" : " is not as in a trace"));
  }
  trace.cut =
      absl::StrCat(path, ": ", parser.at_end() ? "truncated at" : "damaged at", " byte ", parser.position(),
                   "; the ", trace.events.size(), " whole events before it are kept");
  return trace;
}

absl::StatusOr<TraceInfo> ReadTraceInfo(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  std::string_view text(file->data(), static_cast<size_t>(file->size()));
  std::string unpacked, error;
  if (absl::EndsWith(path, ".gz")) text = unpacked = Gunzip(text, size_t{1} << 16, &error);
  TraceInfo info;
  JsonCursor cursor(text, JsonDialect::kLenient);
  cursor.Object([&](std::string_view key) {
    std::string_view value;
    if (key == "traceEvents" || !cursor.Value(&value)) return false;
    if (key == "otherData") JsonToProto(value, &info).IgnoreError();
    return true;
  });
  return info;
}

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::string_view bytes(file->data(), static_cast<size_t>(file->size()));
  if (!absl::EndsWith(path, ".gz")) {
    OTT_ASSIGN_OR_RETURN(Trace trace, ParseTrace(bytes, path));
    trace.file = std::move(file);
    return trace;
  }
  std::string error;
  auto unpacked = std::make_unique<const std::string>(Gunzip(bytes, std::string().max_size(), &error));
  if (unpacked->empty() && !error.empty()) return absl::DataLossError(absl::StrCat(path, ": ", error));
  OTT_ASSIGN_OR_RETURN(Trace trace, ParseTrace(*unpacked, path));
  if (!error.empty() && trace.cut.empty()) trace.cut = absl::StrCat(path, ": ", error);
  trace.unpacked = std::move(unpacked);
  return trace;
}

}  // namespace ott
