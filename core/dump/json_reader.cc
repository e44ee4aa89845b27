#include "ott/core/dump/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"
#include "ott/core/dump/json_writer.h"

namespace ott {
namespace {

enum class NumberClass : uint8_t { kBool, kInteger, kFloat };

// What is known about one number, or all numbers of a list.
struct Traits {
  NumberClass number_class = NumberClass::kInteger;
  bool has_negative = false;
  bool has_large = false;  // more than an int64 holds
};

// One number of a list, as its bits.
union Number {
  Number() = default;
  explicit Number(double value) : number(value) {}
  explicit Number(int64_t value) : integer(value) {}

  double number;
  int64_t integer;
  uint64_t unsigned_integer;
};

// A map or list that is not closed yet.
//
// As long as a list's items are numbers of one class, or lists of one shape of them, the numbers stay on the
// parser's stack of numbers: nested lists then cost nothing but their numbers. The first item that does not
// fit makes all items so far values of their own.
struct Frame {
  bool is_map = false;
  ValueMap map;
  std::string name;  // of the map's next value
  Value::List list;
  bool uniform = false;
  Traits traits;
  Dims item_shape;
  int64_t num_items = 0;
  size_t first_number = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  absl::StatusOr<Value> Parse() {
    OTT_RETURN_IF_ERROR(ParseItem());
    while (!frames_.empty()) OTT_RETURN_IF_ERROR(Continue());
    SkipSpace();
    if (at_ != end_) return Error("something follows the end");
    return std::move(root_);
  }

 private:
  absl::Status Error(absl::string_view what) const {
    const int64_t line = 1 + std::count(begin_, at_, '\n');
    const char* line_start = at_;
    while (line_start != begin_ && line_start[-1] != '\n') --line_start;
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line, " column ", at_ - line_start + 1, ": ", what));
  }

  absl::Status Truncated() const {
    return absl::DataLossError(
        absl::StrCat("truncated at byte ", end_ - begin_,
                     "; the program was probably killed, or the disk full, while writing"));
  }

  // What was expected is not there.
  absl::Status Unexpected(absl::string_view expected) const {
    if (at_ == end_) return Truncated();
    return Error(
        absl::StrCat("expected ", expected, ", found '", absl::CHexEscape(std::string(1, *at_)), "'"));
  }

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool Consume(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // False where the text is another one; a text cut within the word is truncated.
  absl::StatusOr<bool> ConsumeWord(std::string_view word) {
    const std::string_view left(at_, std::min<size_t>(end_ - at_, word.size()));
    if (word.substr(0, left.size()) != left) return false;
    if (left.size() < word.size()) return Truncated();
    at_ += word.size();
    return true;
  }

  // Goes on after an opening bracket or an item of the innermost frame.
  absl::Status Continue() {
    Frame& frame = frames_.back();
    const char close = frame.is_map ? '}' : ']';
    const bool first = frame.is_map ? frame.map.empty() : frame.num_items == 0 && frame.list.empty();
    SkipSpace();
    if (Consume(close)) return CloseFrame();
    if (!first) {
      if (!Consume(',')) return Unexpected(frame.is_map ? "',' or '}'" : "',' or ']'");
      SkipSpace();
    }
    if (frame.is_map) OTT_RETURN_IF_ERROR(ParseName(frame));
    return ParseItem();
  }

  absl::Status ParseName(Frame& frame) {
    if (at_ == end_ || *at_ != '"') return Unexpected("a name in quotes");
    const char* const start = at_;
    OTT_ASSIGN_OR_RETURN(frame.name, ParseString());
    if (frame.map.Find(frame.name) != nullptr) {
      at_ = start;
      return Error(absl::StrCat("the name \"", absl::CHexEscape(frame.name), "\" is used twice"));
    }
    SkipSpace();
    if (!Consume(':')) return Unexpected("':'");
    return absl::OkStatus();
  }

  // A value, or the opening bracket of one.
  absl::Status ParseItem() {
    SkipSpace();
    if (at_ == end_) return Truncated();
    switch (*at_) {
      case '{':
      case '[':
        return OpenFrame();
      case '"': {
        OTT_ASSIGN_OR_RETURN(std::string string, ParseString());
        AddValue(Value(std::move(string)));
        return absl::OkStatus();
      }
      case 't':
      case 'f':
      case 'n':
      case 'N':
      case 'I':
        return ParseWord();
      default:
        return ParseNumber();
    }
  }

  absl::Status ParseWord() {
    constexpr std::string_view kWords[] = {"null", "true", "false", "NaN", "Infinity"};
    for (size_t i = 0; i < std::size(kWords); ++i) {
      OTT_ASSIGN_OR_RETURN(const bool found, ConsumeWord(kWords[i]));
      if (!found) continue;
      if (i == 0) {
        AddValue(Value());
      } else if (i <= 2) {
        AddNumber({NumberClass::kBool}, Number(int64_t{i == 1}));
      } else {
        AddNumber({NumberClass::kFloat}, Number(i == 3 ? std::numeric_limits<double>::quiet_NaN()
                                                       : std::numeric_limits<double>::infinity()));
      }
      return absl::OkStatus();
    }
    return Unexpected("a value");
  }

  absl::Status ParseNumber() {
    const char* const start = at_;
    const bool negative = Consume('-');
    if (negative) {
      OTT_ASSIGN_OR_RETURN(const bool infinite, at_ != end_ && *at_ == 'I' ? ConsumeWord("Infinity") : false);
      if (infinite) {
        AddNumber({NumberClass::kFloat}, Number(-std::numeric_limits<double>::infinity()));
        return absl::OkStatus();
      }
    }
    if (!Consume('0')) OTT_RETURN_IF_ERROR(SkipDigits(negative ? "a digit" : "a value"));
    bool is_float = false;
    if (Consume('.')) {
      is_float = true;
      OTT_RETURN_IF_ERROR(SkipDigits("a digit"));
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      is_float = true;
      ++at_;
      if (!Consume('+')) Consume('-');
      OTT_RETURN_IF_ERROR(SkipDigits("a digit"));
    }
    // A number at the very end may have lost digits.
    if (at_ == end_ && !frames_.empty()) return Truncated();

    Number number;
    Traits traits;
    std::errc error;
    if (is_float) {
      traits.number_class = NumberClass::kFloat;
      error = std::from_chars(start, at_, number.number).ec;
    } else {
      error = std::from_chars(start, at_, number.integer).ec;
      traits.has_negative = negative && number.integer != 0;
      if (error != std::errc() && !negative) {
        error = std::from_chars(start, at_, number.unsigned_integer).ec;
        traits.has_large = true;
      }
    }
    if (error != std::errc()) {
      const std::string text(start, at_);
      at_ = start;
      return Error(absl::StrCat("the number ", text.substr(0, 40), " is out of range"));
    }
    AddNumber(traits, number);
    return absl::OkStatus();
  }

  absl::Status SkipDigits(absl::string_view expected) {
    if (at_ == end_ || !IsDigit(*at_)) return Unexpected(expected);
    do ++at_;
    while (at_ != end_ && IsDigit(*at_));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ParseString() {
    const char* const start = at_++;
    std::string string;
    while (true) {
      const char* const run = at_;
      while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= ' ') ++at_;
      string.append(run, at_);
      if (at_ == end_) return Truncated();
      if (Consume('"')) break;
      if (!Consume('\\')) return Error("a control character in a string must be escaped");
      OTT_RETURN_IF_ERROR(ParseEscape(string));
    }
    if (const absl::Status utf8 = CheckUtf8(string); !utf8.ok()) {
      at_ = start;
      return Error(utf8.message());
    }
    return string;
  }

  absl::Status ParseEscape(std::string& string) {
    if (at_ == end_) return Truncated();
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
    if (const size_t i = kNames.find(*at_); i != std::string_view::npos) {
      string += kCharacters[i];
      ++at_;
      return absl::OkStatus();
    }
    if (!Consume('u')) return Error("unknown escape");
    OTT_ASSIGN_OR_RETURN(uint32_t code, ParseHex4());
    if (code >= 0xd800 && code <= 0xdbff) {
      OTT_ASSIGN_OR_RETURN(const bool pair, ConsumeWord("\\u"));
      if (!pair) return Error("half of a surrogate pair");
      OTT_ASSIGN_OR_RETURN(const uint32_t low, ParseHex4());
      if (low < 0xdc00 || low > 0xdfff) return Error("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff) {
      return Error("half of a surrogate pair");
    }
    AppendUtf8(code, string);
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> ParseHex4() {
    if (end_ - at_ < 4) return Truncated();
    uint32_t code = 0;
    if (std::from_chars(at_, at_ + 4, code, 16).ptr != at_ + 4)
      return Error("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  absl::Status OpenFrame() {
    if (frames_.size() == kMaxJsonDepth) {
      return Error(absl::StrCat("nested deeper than ", kMaxJsonDepth, " levels"));
    }
    Frame& frame = frames_.emplace_back();
    frame.is_map = *at_ == '{';
    frame.uniform = !frame.is_map;
    frame.first_number = numbers_.size();
    ++at_;
    return absl::OkStatus();
  }

  absl::Status CloseFrame() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (frame.is_map) {
      AddValue(Value(std::move(frame.map)));
    } else if (frame.uniform && frame.num_items > 0) {
      AddUniformList(frame);
    } else {
      AddValue(Value(std::move(frame.list)));
    }
    return absl::OkStatus();
  }

  void AddNumber(Traits traits, Number number) {
    if (!frames_.empty() && Join(frames_.back(), traits, {})) {
      numbers_.push_back(number);
    } else {
      AddValue(NumberValue(traits, number));
    }
  }

  // The numbers of a closed list are the last ones on the stack.
  void AddUniformList(const Frame& list) {
    Dims shape = {list.num_items};
    shape.insert(shape.end(), list.item_shape.begin(), list.item_shape.end());
    if (!frames_.empty() && Join(frames_.back(), list.traits, shape)) return;
    Value tensor = TensorValue(list.traits, shape, list.first_number);
    numbers_.resize(list.first_number);
    AddValue(std::move(tensor));
  }

  // Makes an item, whose numbers are or will be on the stack, one more of a list's. False where it does not
  // fit.
  static bool Join(Frame& list, Traits item, const Dims& shape) {
    if (!list.uniform) return false;
    if (list.num_items == 0) {
      list.traits = item;
      list.item_shape = shape;
      list.num_items = 1;
      return true;
    }
    item.has_negative |= list.traits.has_negative;
    item.has_large |= list.traits.has_large;
    if (list.traits.number_class != item.number_class || (item.has_negative && item.has_large) ||
        list.item_shape != shape) {
      return false;
    }
    list.traits = item;
    ++list.num_items;
    return true;
  }

  void AddValue(Value value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.is_map) {
      frame.map.Insert(std::move(frame.name), std::move(value));
      return;
    }
    if (frame.uniform) SplitItems(frame);
    frame.list.push_back(std::move(value));
  }

  // Makes each item of a uniform list a value of its own.
  void SplitItems(Frame& frame) {
    size_t item_size = 1;
    for (const int64_t dimension : frame.item_shape) item_size *= dimension;
    for (int64_t i = 0; i < frame.num_items; ++i) {
      const size_t first = frame.first_number + i * item_size;
      frame.list.push_back(frame.item_shape.empty() ? NumberValue(frame.traits, numbers_[first])
                                                    : TensorValue(frame.traits, frame.item_shape, first));
    }
    numbers_.resize(frame.first_number);
    frame.uniform = false;
  }

  static Value NumberValue(Traits traits, Number number) {
    switch (traits.number_class) {
      case NumberClass::kBool:
        return Value(number.integer != 0);
      case NumberClass::kFloat:
        return Value(number.number);
      default:
        if (!traits.has_large || number.integer >= 0) return Value(number.integer);
        return MakeTensor(DType::kUInt64, {}, &number);
    }
  }

  Value TensorValue(Traits traits, const Dims& shape, size_t first_number) const {
    const Number* const numbers = numbers_.data() + first_number;
    switch (traits.number_class) {
      case NumberClass::kBool:
        return MakeTensor(DType::kBool, shape, numbers);
      case NumberClass::kFloat:
        return MakeTensor(DType::kFloat64, shape, numbers);
      default:
        return MakeTensor(traits.has_large ? DType::kUInt64 : DType::kInt64, shape, numbers);
    }
  }

  static Value MakeTensor(DType dtype, const Dims& shape, const Number* numbers) {
    size_t count = 1;
    for (const int64_t dimension : shape) count *= dimension;
    const std::shared_ptr<Number[]> memory(new Number[count]);
    if (dtype == DType::kBool) {
      char* const bytes = reinterpret_cast<char*>(memory.get());
      for (size_t i = 0; i < count; ++i) bytes[i] = numbers[i].integer != 0;
    } else {
      std::memcpy(memory.get(), numbers, count * sizeof(Number));
    }
    return Value(Tensor{TensorView(memory.get(), dtype, shape), memory});
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  std::vector<Frame> frames_;
  std::vector<Number> numbers_;
  Value root_;
};

}  // namespace

absl::StatusOr<Value> ParseJson(std::string_view text) { return Parser(text).Parse(); }

}  // namespace ott
