#include "ott/core/chrome_trace/event_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <deque>
#include <iterator>

#include "ott/core/base/utf8.h"
#include "ott/core/chrome_trace/trace_splitter.h"
#include "ott/core/json/json_string.h"
#include "simdjson.h"

namespace ott::chrome_trace {
namespace {

namespace ondemand = simdjson::ondemand;

// Times beyond some 146 years are none: sums of two must not overflow.
constexpr int64_t kLongest = int64_t{1} << 62;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::string_view Unquoted(std::string_view token) {
  return token.size() >= 2 && token.front() == '"' && token.back() == '"' ? token.substr(1, token.size() - 2)
                                                                          : token;
}

struct KnownCategory {
  std::string_view name;
  Event::Kind kind;
};

// Those of today, and those of PyTorch 1.8 to 1.11 after them.
constexpr KnownCategory kCategories[] = {
    {"cpu_op", Event::Kind::kOp},
    {"kernel", Event::Kind::kKernel},
    {"gpu_memcpy", Event::Kind::kCopy},
    {"gpu_memset", Event::Kind::kMemset},
    {"user_annotation", Event::Kind::kAnnotation},
    {"python_function", Event::Kind::kPython},
    {"ac2g", Event::Kind::kLaunchFlow},
    {"fwdbwd", Event::Kind::kPassFlow},
    {"Operator", Event::Kind::kOp},
    {"Kernel", Event::Kind::kKernel},
    {"Memcpy", Event::Kind::kCopy},
    {"Memset", Event::Kind::kMemset},
    {"Runtime", Event::Kind::kRuntime},
    {"async_cpu_to_gpu", Event::Kind::kLaunchFlow},
    {"forward_backward", Event::Kind::kPassFlow},
};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Without Kineto, PyTorch writes no categories: processes tell ops from kernels.
Event::Kind KindWithoutCategory(const EventFields& event) {
  constexpr std::string_view kStep = "ProfilerStep#";
  if (event.process_text == "CUDA functions") return Event::Kind::kKernel;
  if (event.process_text != "CPU functions") return Event::Kind::kOther;
  return event.name.substr(0, kStep.size()) == kStep ? Event::Kind::kAnnotation : Event::Kind::kOp;
}

Event::Kind KindOf(const EventFields& event) {
  if (event.phase == 'M') return Event::Kind::kMetadata;
  const std::string_view category = event.category;
  if (category.empty()) return KindWithoutCategory(event);
  const auto known = std::find_if(std::begin(kCategories), std::end(kCategories),
                                  [&](const KnownCategory& k) { return k.name == category; });
  if (known != std::end(kCategories)) return known->kind;
  // cuda_runtime, cuda_driver, hip_runtime, xpu_runtime, privateuse1_runtime, ...
  if (EndsWith(category, "_runtime") || EndsWith(category, "_driver")) return Event::Kind::kRuntime;
  return Event::Kind::kOther;
}

// Compares like key.unsafe_is_equal(name), which looks at one character after the other.
template <size_t kSize>
bool Is(ondemand::raw_json_string key, const char (&name)[kSize]) {
  return std::memcmp(key.raw(), name, kSize - 1) == 0 && key.raw()[kSize - 1] == '"';
}

// An integer, or "0x1f" of 64 bits.
int64_t ParseId(std::string_view id) {
  if (id.substr(0, 2) != "0x") return ParseInteger(id);
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(id.data() + 2, id.data() + id.size(), bits, 16);
  return error == std::errc() && end == id.data() + id.size() ? static_cast<int64_t>(bits) : kNoNumber;
}

void SetNumber(std::string_view token, int64_t (*parse)(std::string_view), int64_t* number, Event* event) {
  *number = parse(Unquoted(token));
  if (*number == kNoNumber) event->has_bad_number = true;
}

}  // namespace

int64_t ParseMicroseconds(std::string_view number) {
  const bool negative = !number.empty() && number[0] == '-';
  int64_t result = 0;
  int64_t scale = 1000;  // of the digit to come, after the point
  bool after_point = false;
  bool is_exact = number.size() > (negative ? 1U : 0U);
  for (const char c : number.substr(negative ? 1 : 0)) {
    if (c == '.' && !after_point) {
      after_point = true;
    } else if (c < '0' || c > '9' || (scale > 1 && result > kLongest / 10)) {
      is_exact = false;
      break;
    } else if (!after_point) {
      result = 10 * result + (c - '0');
    } else if (scale > 1) {
      result = 10 * result + (c - '0');
      scale /= 10;
    }
  }
  if (is_exact && result <= kLongest / scale) return (negative ? -result : result) * scale;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const double nanoseconds = value * 1000;
  const bool good = error == std::errc() && end == number.data() + number.size() &&
                    std::abs(nanoseconds) < static_cast<double>(kLongest);
  return good ? std::llround(nanoseconds) : kNoNumber;
}

int64_t ParseInteger(std::string_view number) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc() && end == number.data() + number.size()) return value;
  double real = 0;
  const auto [real_end, real_error] = std::from_chars(number.data(), number.data() + number.size(), real);
  const bool good =
      real_error == std::errc() && real_end == number.data() + number.size() && std::abs(real) < 9e18;
  return good ? static_cast<int64_t>(real) : kNoNumber;
}

struct EventParser::Parser {
  // Fields and arguments, by the first letter of their names, for there are many events.
  void AddField(ondemand::raw_json_string key, ondemand::value& value, Event* event);
  void AddArgument(ondemand::raw_json_string key, ondemand::value& value, Event* event);
  void AddArguments(ondemand::value& value, Event* event);
  void AddText(ondemand::value& value, std::string_view* text);
  bool ParseObject(ondemand::object& object, Event* event);
  bool ParseText(std::string_view text, size_t capacity, Event* event);

  ondemand::parser parser;
  // Holds the event that is being parsed.
  ondemand::document document;
  std::string repaired;
  std::deque<std::string> unescaped;
  bool failed = false;
  // True if the last event had useful arguments.
  bool has_arguments = false;
};

void EventParser::Parser::AddText(ondemand::value& value, std::string_view* text) {
  const std::string_view token = Trimmed(value.raw_json_token());
  *text = Unquoted(token);
  if (text->size() == token.size() || text->find('\\') == std::string_view::npos) return;
  *text = unescaped.emplace_back(UnescapedJson(*text));
}

void EventParser::Parser::AddArgument(ondemand::raw_json_string key, ondemand::value& value, Event* event) {
  const auto token = [&] { return Trimmed(value.raw_json_token()); };
  const auto integer = [&](int64_t* number) {
    const std::string_view text = token();
    if (text != "null" && text != "\"\"") SetNumber(text, ParseInteger, number, event);
  };
  const auto list = [&](std::string_view* text) {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return;
    std::string_view json;
    if (array.raw_json().get(json) == simdjson::SUCCESS) {
      *text = Trimmed(json);
    } else {
      failed = true;
    }
  };
  CollectiveArguments& collective = event->collective;
  const auto is = [&](const auto& name) { return Is(key, name); };
  switch (key.raw()[0]) {
    case 'b':
      if (is("bytes")) return integer(&event->bytes);
      if (is("block")) return list(&event->block);
      return;
    case 'c':
      if (is("correlation")) return integer(&event->correlation);
      return;
    case 'd':
      if (is("device")) return integer(&event->device);
      if (is("dtype")) return AddText(value, &collective.dtype);
      return;
    case 'e':
      if (is("external id")) return integer(&event->external_id);
      return;
    case 'g':
      if (is("grid")) return list(&event->grid);
      return;
    case 'k':
      if (is("kernel_flop")) event->kernel_flop = Unquoted(token());
      if (is("kernel_num_gb")) event->kernel_num_gb = Unquoted(token());
      return;
    case 'n':
      if (is("name")) return AddText(value, &event->metadata_name);
      return;
    case 's':
      if (is("stream")) return integer(&event->stream);
      return;
    case 'C':
      if (is("Concrete Inputs")) return list(&event->inputs);
      if (is("Collective name")) return AddText(value, &collective.name);
      if (is("Call stack")) return AddText(value, &event->call_stack);
      return;
    case 'E':
      if (is("External id")) return integer(&event->external_id);
      return;
    case 'G':
      if (is("Group size")) return integer(&collective.group_size);
      return;
    case 'I':
      if (is("Input Dims") || is("Input dims")) return list(&event->dims);
      if (is("Input type")) return list(&event->types);
      if (is("Input Strides")) return list(&event->strides);
      if (is("In msg nelems")) return integer(&collective.in_elements);
      return;
    case 'M':
      if (is("Module Hierarchy")) return AddText(value, &event->module_hierarchy);
      return;
    case 'O':
      if (is("Out msg nelems")) return integer(&collective.out_elements);
      return;
    case 'P':
      if (is("Process Group Name")) return AddText(value, &collective.group);
      if (is("Process Group Description")) return AddText(value, &collective.group_description);
      if (is("Process Group Ranks")) {
        ondemand::json_type type;
        if (value.type().get(type) == simdjson::SUCCESS && type == ondemand::json_type::array)
          return list(&collective.group_ranks);
        return AddText(value, &collective.group_ranks);
      }
      return;
    case 'S':
      if (is("Sequence number")) return integer(&event->sequence_number);
      if (is("Seq")) return integer(&collective.sequence_number);
      return;
    default:
      return;
  }
}

void EventParser::Parser::AddArguments(ondemand::value& value, Event* event) {
  const char* const begin = std::string_view(value.raw_json_token()).data();
  ondemand::object args;
  if (value.get_object().get(args) != simdjson::SUCCESS) return;
  has_arguments = true;
  for (auto field : args) {
    if (field.error() != simdjson::SUCCESS) {
      failed = true;
      return;
    }
    AddArgument(field.value_unsafe().key(), field.value_unsafe().value(), event);
  }
  const char* next = nullptr;
  if (document.current_location().get(next) == simdjson::SUCCESS)
    event->all = Trimmed({begin, static_cast<size_t>(next - begin)});
}

void EventParser::Parser::AddField(ondemand::raw_json_string key, ondemand::value& value, Event* event) {
  const auto token = [&] { return Trimmed(value.raw_json_token()); };
  const auto is = [&](const auto& name) { return Is(key, name); };
  switch (key.raw()[0]) {
    case 'a':
      // Most events are of these categories, and nothing of their arguments is of use.
      if (event->category == "python_function" || event->category == "cpu_instant_event") return;
      if (is("args")) AddArguments(value, event);
      return;
    case 'c':
      if (is("cat")) AddText(value, &event->category);
      return;
    case 'd':
      if (!is("dur")) return;
      return SetNumber(token(), ParseMicroseconds, &event->duration, event);
    case 'i':
      if (is("id")) event->flow_id = ParseId(Unquoted(token()));
      return;
    case 'n':
      if (is("name")) AddText(value, &event->name);
      return;
    case 'p':
      if (is("pid")) {
        event->process_text = Unquoted(token());
        event->process = ParseInteger(event->process_text);
      }
      if (is("ph")) {
        const std::string_view phase = Unquoted(token());
        if (phase.size() == 1) event->phase = phase[0];
      }
      return;
    case 't':
      if (is("ts")) SetNumber(token(), ParseMicroseconds, &event->start, event);
      if (is("tid")) event->thread = ParseInteger(Unquoted(token()));
      return;
    default:
      return;
  }
}

bool EventParser::Parser::ParseObject(ondemand::object& object, Event* event) {
  failed = false;
  has_arguments = false;
  unescaped.clear();
  for (auto field : object) {
    if (field.error() != simdjson::SUCCESS) return false;
    // In its place: a copy, written in halves and read whole, would stall at each field.
    AddField(field.value_unsafe().key(), field.value_unsafe().value(), event);
    if (failed) return false;
  }
  event->kind = KindOf(*event);
  return true;
}

bool EventParser::Parser::ParseText(std::string_view text, size_t capacity, Event* event) {
  *event = Event();
  ondemand::object object;
  return parser.iterate(text.data(), text.size(), capacity).get(document) == simdjson::SUCCESS &&
         document.get_object().get(object) == simdjson::SUCCESS && ParseObject(object, event);
}

EventParser::EventParser() : parser_(std::make_unique<Parser>()) {}
EventParser::~EventParser() = default;

bool EventParser::Parse(std::string_view text, size_t padding, Event* event, bool* repaired) {
  *repaired = false;
  if (parser_->ParseText(text, text.size() + padding, event)) return true;
  std::string& copy = parser_->repaired;
  copy = ValidUtf8(text);
  std::replace_if(
      copy.begin(), copy.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  *repaired = copy != text;
  const size_t size = copy.size();
  copy.append(TraceSplitter::kPadding, ' ');
  return *repaired && parser_->ParseText(std::string_view(copy).substr(0, size), copy.size(), event);
}

size_t EventParser::ParseBatch(char* begin, size_t size, size_t padding,
                               const std::function<void(const Event&, size_t offset)>& visitor) {
  const char before = std::exchange(begin[-1], '[');
  const char after = std::exchange(begin[size], ']');
  const auto parse = [&]() -> size_t {
    ondemand::document& document = parser_->document;
    ondemand::array events;
    if (parser_->parser.iterate(begin - 1, size + 2, size + 2 + padding).get(document) != simdjson::SUCCESS ||
        document.get_array().get(events) != simdjson::SUCCESS) {
      return 0;
    }
    size_t done = 0;
    Event event;
    parser_->has_arguments = false;
    for (auto element : events) {
      // Most events have no arguments that need be cleared.
      static_cast<EventFields&>(event) = EventFields();
      if (parser_->has_arguments) static_cast<EventArguments&>(event) = EventArguments();
      ondemand::object object;
      const char* end = nullptr;
      if (element.get_object().get(object) != simdjson::SUCCESS || !parser_->ParseObject(object, &event) ||
          document.current_location().get(end) != simdjson::SUCCESS) {
        return done;
      }
      visitor(event, done);
      done = static_cast<size_t>(end - begin);
    }
    return size;
  };
  const size_t done = parse();
  begin[-1] = before;
  begin[size] = after;
  return done;
}

}  // namespace ott::chrome_trace
