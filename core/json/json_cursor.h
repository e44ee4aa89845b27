// The one tokenizer of JSON and of what resembles it.

#ifndef OTT_CORE_JSON_JSON_CURSOR_H_
#define OTT_CORE_JSON_JSON_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ott {

enum class JsonDialect : uint8_t {
  kStrict,   // RFC 8259
  kPython,   // and NaN, Infinity and -Infinity, as Python's json module writes them
  kLenient,  // and, where a number or word belongs, anything up to the next delimiter
  kLiteral,  // Python's literals as well: single quotes, tuples, a comma before the end, None, True, False
};

// A number or a word, as it stands in the text.
struct JsonScalar {
  // std::from_chars reads kFloat, NaN and the infinities included.
  enum class Kind : uint8_t { kNull, kFalse, kTrue, kInteger, kFloat, kOther };
  Kind kind = Kind::kOther;
  std::string_view text;
};

// Steps through a text and copies and converts nothing. A function that returns false has met the end of the
// text (at_end()) or what does not belong there, at position(). Not thread-safe.
//
//   JsonCursor cursor(text, JsonDialect::kPython);
//   cursor.Object([&](std::string_view key) {
//     return key == "size" ? cursor.Scalar(&size) : cursor.Value(&rest);
//   });
class JsonCursor {
 public:
  JsonCursor(std::string_view text, JsonDialect dialect)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), dialect_(dialect) {}

  size_t position() const { return static_cast<size_t>(at_ - begin_); }
  bool at_end() const { return at_ == end_; }
  // Returns what Scalar() expected where it returned false, such as "a digit".
  const char* expected() const { return expected_; }

  // Returns the next character that is no space; '\0' at the end.
  char Peek() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    return at_ != end_ ? *at_ : '\0';
  }

  bool Skip(char expected) {
    if (Peek() != expected || at_end()) return false;
    ++at_;
    return true;
  }

  // Reads what is between the quotes, as it is (UnescapeJson).
  bool String(std::string_view* raw);

  // At the text's end a number may have lost digits.
  bool Scalar(JsonScalar* scalar);

  // Takes any value, of 256 levels at most. False for a number or word at the text's end. kStrict: what is
  // between quotes is checked, too.
  bool Value(std::string_view* raw);

  // Calls visit(raw key) before each value of an object; it must take the value.
  template <typename Visitor>
  bool Object(Visitor visit) {
    if (!Skip('{')) return false;
    return Items('}', [&] {
      std::string_view key;
      return String(&key) && Skip(':') && visit(key);
    });
  }

  // Calls visit() before each value of a list, or tuple; it must take the value.
  template <typename Visitor>
  bool List(Visitor visit) {
    const bool is_tuple = dialect_ == JsonDialect::kLiteral && Peek() == '(';
    if (!Skip(is_tuple ? '(' : '[')) return false;
    return Items(is_tuple ? ')' : ']', visit);
  }

 private:
  template <typename Visitor>
  bool Items(char close, Visitor visit) {
    if (Skip(close)) return true;
    do {
      if (dialect_ == JsonDialect::kLiteral && Skip(close)) return true;
      if (!visit()) return false;
    } while (Skip(','));
    return Skip(close);
  }

  bool SkipValue(int depth);
  bool SkipNumber(JsonScalar::Kind* kind);
  bool SkipDigits();
  bool SkipKnownWord(JsonScalar::Kind* kind);
  bool SkipWord(std::string_view word);
  bool Fail(const char* expected) {
    expected_ = expected;
    return false;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const JsonDialect dialect_;
  const char* expected_ = "";
};

}  // namespace ott

#endif  // OTT_CORE_JSON_JSON_CURSOR_H_
