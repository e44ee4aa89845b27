#include "ott/core/dump/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/json/json_cursor.h"
#include "ott/core/json/json_string.h"

namespace ott {
namespace {

enum class NumberClass : uint8_t { kBool, kInteger, kFloat };

// The properties known of one number, or of all numbers of a list.
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
// The numbers of a list stay on the parser's stack of numbers while they are of one class, or are lists of
// one shape: nested lists then cost nothing but their numbers. The first item that does not fit makes all
// items so far values of their own.
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

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), cursor_(text, JsonDialect::kPython) {}

  absl::StatusOr<Value> Parse() {
    OTT_RETURN_IF_ERROR(ParseItem());
    while (!frames_.empty()) OTT_RETURN_IF_ERROR(Continue());
    cursor_.Peek();
    if (!cursor_.at_end()) return Error("something follows the end");
    return std::move(root_);
  }

 private:
  absl::Status ErrorAt(size_t position, absl::string_view what) const {
    const std::string_view before = text_.substr(0, position);
    const int64_t line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line, " column ", position - line_start + 1, ": ", what));
  }

  absl::Status Error(absl::string_view what) const { return ErrorAt(cursor_.position(), what); }

  absl::Status Truncated() const {
    return absl::DataLossError(
        absl::StrCat("truncated at byte ", text_.size(),
                     "; the program was probably killed, or the disk full, while writing"));
  }

  // Returns the error of expected text that is missing.
  absl::Status Unexpected(absl::string_view expected) const {
    if (cursor_.at_end()) return Truncated();
    return Error(absl::StrCat("expected ", expected, ", found '",
                              absl::CHexEscape(std::string(1, text_[cursor_.position()])), "'"));
  }

  // Goes on after an opening bracket or an item of the innermost frame.
  absl::Status Continue() {
    Frame& frame = frames_.back();
    const bool first = frame.is_map ? frame.map.empty() : frame.num_items == 0 && frame.list.empty();
    if (cursor_.Skip(frame.is_map ? '}' : ']')) return CloseFrame();
    if (!first && !cursor_.Skip(',')) return Unexpected(frame.is_map ? "',' or '}'" : "',' or ']'");
    if (frame.is_map) OTT_RETURN_IF_ERROR(ParseName(frame));
    return ParseItem();
  }

  absl::Status ParseName(Frame& frame) {
    if (cursor_.Peek() != '"') return Unexpected("a name in quotes");
    const size_t start = cursor_.position();
    OTT_ASSIGN_OR_RETURN(frame.name, ParseString());
    if (frame.map.Find(frame.name) != nullptr) {
      return ErrorAt(start, absl::StrCat("the name \"", absl::CHexEscape(frame.name), "\" is used twice"));
    }
    return cursor_.Skip(':') ? absl::OkStatus() : Unexpected("':'");
  }

  // A value, or the opening bracket of one.
  absl::Status ParseItem() {
    switch (cursor_.Peek()) {
      case '{':
      case '[':
        return OpenFrame();
      case '"': {
        OTT_ASSIGN_OR_RETURN(std::string string, ParseString());
        return AddValue(Value(std::move(string)));
      }
      default:
        return ParseScalar();
    }
  }

  absl::Status ParseScalar() {
    JsonScalar scalar;
    if (!cursor_.Scalar(&scalar)) return Unexpected(cursor_.expected());
    switch (scalar.kind) {
      case JsonScalar::Kind::kNull:
        return AddValue(Value());
      case JsonScalar::Kind::kFalse:
      case JsonScalar::Kind::kTrue:
        return AddNumber({NumberClass::kBool}, Number(int64_t{scalar.kind == JsonScalar::Kind::kTrue}));
      default:
        // A number at the very end may have lost digits.
        if (cursor_.at_end() && !frames_.empty()) return Truncated();
        return ParseNumber(scalar);
    }
  }

  absl::Status ParseNumber(const JsonScalar& scalar) {
    const char* const begin = scalar.text.data();
    const char* const end = begin + scalar.text.size();
    Number number;
    Traits traits;
    std::errc error;
    if (scalar.kind == JsonScalar::Kind::kFloat) {
      traits.number_class = NumberClass::kFloat;
      error = std::from_chars(begin, end, number.number).ec;
    } else {
      const bool negative = *begin == '-';
      error = std::from_chars(begin, end, number.integer).ec;
      traits.has_negative = negative && number.integer != 0;
      if (error != std::errc() && !negative) {
        error = std::from_chars(begin, end, number.unsigned_integer).ec;
        traits.has_large = true;
      }
    }
    if (error != std::errc()) {
      return ErrorAt(begin - text_.data(),
                     absl::StrCat("the number ", std::string(scalar.text.substr(0, 40)), " is out of range"));
    }
    return AddNumber(traits, number);
  }

  absl::StatusOr<std::string> ParseString() {
    const size_t start = cursor_.position();
    std::string_view raw;
    if (!cursor_.String(&raw)) return Truncated();
    std::string string;
    if (const JsonStringError error = UnescapeJson(raw, string); error.what != nullptr) {
      return ErrorAt(start + 1 + error.position, error.what);
    }
    if (const absl::Status utf8 = CheckUtf8(string); !utf8.ok()) return ErrorAt(start, utf8.message());
    return string;
  }

  absl::Status OpenFrame() {
    if (frames_.size() == kMaxJsonDepth) {
      return Error(absl::StrCat("nested deeper than ", kMaxJsonDepth, " levels"));
    }
    Frame& frame = frames_.emplace_back();
    frame.is_map = cursor_.Skip('{');
    frame.uniform = !frame.is_map;
    frame.first_number = numbers_.size();
    if (!frame.is_map) cursor_.Skip('[');
    return absl::OkStatus();
  }

  absl::Status CloseFrame() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (frame.is_map) return AddValue(Value(std::move(frame.map)));
    if (frame.uniform && frame.num_items > 0) return AddUniformList(frame);
    return AddValue(Value(std::move(frame.list)));
  }

  absl::Status AddNumber(Traits traits, Number number) {
    if (frames_.empty() || !Join(frames_.back(), traits, {})) return AddValue(NumberValue(traits, number));
    numbers_.push_back(number);
    return absl::OkStatus();
  }

  // The numbers of a closed list are the last ones on the stack.
  absl::Status AddUniformList(const Frame& list) {
    Dims shape = list.item_shape;
    shape.insert(shape.begin(), list.num_items);
    if (!frames_.empty() && Join(frames_.back(), list.traits, shape)) return absl::OkStatus();
    Value tensor = TensorValue(list.traits, shape, list.first_number);
    numbers_.resize(list.first_number);
    return AddValue(std::move(tensor));
  }

  absl::Status CountValues(int64_t count) {
    num_values_ += count;
    if (num_values_ <= kMaxJsonValues) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(ErrorAt(cursor_.position(), "").message(), "more than the ", kMaxJsonValues,
                     " values that a tree may have, tensors' elements not counted"));
  }

  // Makes an item, whose numbers are or will be on the stack, one more of a list's. False if it does not
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

  absl::Status AddValue(Value value) {
    OTT_RETURN_IF_ERROR(CountValues(1));
    if (frames_.empty()) {
      root_ = std::move(value);
      return absl::OkStatus();
    }
    Frame& frame = frames_.back();
    if (frame.is_map) {
      frame.map.Insert(std::move(frame.name), std::move(value));
      return absl::OkStatus();
    }
    if (frame.uniform) OTT_RETURN_IF_ERROR(SplitItems(frame));
    frame.list.push_back(std::move(value));
    return absl::OkStatus();
  }

  // Makes each item of a uniform list a value of its own.
  absl::Status SplitItems(Frame& frame) {
    OTT_RETURN_IF_ERROR(CountValues(frame.num_items));
    size_t item_size = 1;
    for (const int64_t dimension : frame.item_shape) item_size *= dimension;
    for (int64_t i = 0; i < frame.num_items; ++i) {
      const size_t first = frame.first_number + i * item_size;
      // An item may have no large number while another one does. Beside these no number is negative.
      Traits traits = frame.traits;
      traits.has_large &= std::any_of(&numbers_[first], &numbers_[first] + item_size,
                                      [](const Number& number) { return number.integer < 0; });
      frame.list.push_back(frame.item_shape.empty() ? NumberValue(traits, numbers_[first])
                                                    : TensorValue(traits, frame.item_shape, first));
    }
    numbers_.resize(frame.first_number);
    frame.uniform = false;
    return absl::OkStatus();
  }

  static Value NumberValue(Traits traits, Number number) {
    switch (traits.number_class) {
      case NumberClass::kBool:
        return Value(number.integer != 0);
      case NumberClass::kFloat:
        return Value(number.number);
      default:
        if (!traits.has_large) return Value(number.integer);
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

  const std::string_view text_;
  JsonCursor cursor_;
  std::vector<Frame> frames_;
  std::vector<Number> numbers_;
  int64_t num_values_ = 0;
  Value root_;
};

}  // namespace

absl::StatusOr<Value> ParseJson(std::string_view text) { return Parser(text).Parse(); }

}  // namespace ott
