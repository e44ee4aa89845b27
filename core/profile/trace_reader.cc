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
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

constexpr int kMaxDepth = 256;

// Whether JSON allows it between quotes.
bool IsString(std::string_view raw) {
  for (size_t i = 0; i < raw.size(); ++i) {
    if (static_cast<uint8_t>(raw[i]) < 0x20) return false;
    if (raw[i] != '\\') continue;
    const std::string_view hex = raw.substr(i + 2, 4);
    const bool is_unicode = raw[++i] == 'u' && hex.size() == 4 &&
                            hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (!is_unicode && std::string_view("\"\\/bfnrt").find(raw[i]) == std::string_view::npos) return false;
  }
  std::string valid;
  AppendValidUtf8(raw, valid);
  return valid == raw;
}

// Whether JSON has such a number, true, false or null.
bool IsScalar(std::string_view text) {
  if (text == "true" || text == "false" || text == "null") return true;
  const auto skip_digits = [&text] {
    const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  if (text[0] == '-') text.remove_prefix(1);
  const bool begins_with_zero = !text.empty() && text[0] == '0';
  const size_t num_digits = skip_digits();
  if (num_digits == 0 || (begins_with_zero && num_digits > 1)) return false;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    if (skip_digits() == 0) return false;
  }
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
    if (skip_digits() == 0) return false;
  }
  return text.empty();
}

// Steps through JSON. A function that returns false has met the end of the text or what is no JSON, at
// position().
class JsonCursor {
 public:
  // is_strict: what is no number, word or string of JSON is not taken for one.
  explicit JsonCursor(std::string_view text, bool is_strict = false) : text_(text), is_strict_(is_strict) {}

  size_t position() const { return position_; }
  bool at_end() const { return position_ >= text_.size(); }

  // The next character that is no space; '\0' at the end.
  char Peek() {
    while (position_ < text_.size() && IsSpace(text_[position_])) ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool Skip(char expected) {
    if (Peek() != expected || at_end()) return false;
    ++position_;
    return true;
  }

  // What is between the quotes, as it is.
  bool String(std::string_view* raw) {
    if (!Skip('"')) return false;
    const size_t begin = position_;
    while (true) {
      position_ = text_.find_first_of("\"\\", position_);
      if (position_ == std::string_view::npos) position_ = text_.size();
      if (at_end()) return false;
      if (text_[position_] == '"') break;
      position_ += 2;
      if (position_ > text_.size()) position_ = text_.size();
    }
    *raw = text_.substr(begin, position_++ - begin);
    return !is_strict_ || IsString(*raw);
  }

  bool Value(std::string_view* raw) {
    const char first = Peek();
    const size_t begin = position_;
    if (!SkipValue(first, 0)) return false;
    *raw = text_.substr(begin, position_ - begin);
    return true;
  }

  // Calls visit(key) before each value of an object; it must take the value.
  template <typename Visitor>
  bool Object(Visitor visit) {
    if (!Skip('{')) return false;
    if (Skip('}')) return true;
    do {
      std::string_view key;
      if (!String(&key) || !Skip(':') || !visit(key)) return false;
    } while (Skip(','));
    return Skip('}');
  }

  // Calls visit() before each value of a list.
  template <typename Visitor>
  bool List(Visitor visit) {
    if (!Skip('[')) return false;
    if (Skip(']')) return true;
    do {
      if (!visit()) return false;
    } while (Skip(','));
    return Skip(']');
  }

 private:
  static bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

  bool SkipValue(char first, int depth) {
    if (depth > kMaxDepth) return false;
    const auto skip_inner = [this, depth] { return SkipValue(Peek(), depth + 1); };
    switch (first) {
      case '"': {
        std::string_view ignored;
        return String(&ignored);
      }
      case '{':
        return Object([&skip_inner](std::string_view) { return skip_inner(); });
      case '[':
        return List(skip_inner);
      default: {
        // A number, true, false or null; at the very end it may be cut.
        const size_t begin = position_;
        position_ = std::min(text_.find_first_of(",]} \n\r\t", position_), text_.size());
        return position_ > begin && !at_end() &&
               (!is_strict_ || IsScalar(text_.substr(begin, position_ - begin)));
      }
    }
  }

  const std::string_view text_;
  const bool is_strict_;
  size_t position_ = 0;
};

bool IsObject(std::string_view text) {
  std::string_view value;
  return !text.empty() && text[0] == '{' && JsonCursor(text, true).Value(&value);
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

uint32_t Hex(std::string_view digits) {
  uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::string Unescaped(std::string_view raw) {
  std::string result;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      result += raw[i];
      continue;
    }
    const char escaped = raw[++i];
    constexpr std::string_view kFrom = "bfnrt";
    constexpr std::string_view kTo = "\b\f\n\r\t";
    if (escaped == 'u') {
      uint32_t character = Hex(raw.substr(i + 1, 4));
      i += 4;
      if (character >= 0xD800 && character < 0xDC00 && raw.substr(std::min(i + 1, raw.size()), 2) == "\\u") {
        character = 0x10000 + ((character - 0xD800) << 10) + (Hex(raw.substr(i + 3, 4)) & 0x3FF);
        i += 6;
      }
      AppendUtf8(character, result);
    } else {
      const size_t index = kFrom.find(escaped);
      result += index == std::string_view::npos ? escaped : kTo[index];
    }
  }
  return result;
}

class TraceParser {
 public:
  TraceParser(std::string_view text, Trace& trace) : cursor_(text), trace_(trace) {}

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
          {event.process, event.track, Unescaped(Unquoted(Member(event.args, "name"))), event.track});
    } else if (event.name == "thread_sort_index" && !trace_.tracks.empty() &&
               trace_.tracks.back().track == event.track) {
      trace_.tracks.back().sort_index = Integer(Member(event.args, "sort_index"));
    }
  }

  static std::string_view Member(std::string_view object, std::string_view name) {
    JsonCursor cursor(object);
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
    return trace_.unescaped.emplace_back(Unescaped(raw));
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
  JsonCursor cursor(text);
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
