#include "ott/core/json/json_cursor.h"

#include <algorithm>
#include <cstring>

#include "ott/core/json/json_string.h"

namespace ott {
namespace {

using Kind = JsonScalar::Kind;

constexpr int kMaxDepth = 256;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Behind the digits, eight at a time: most floating-point numbers have 17.
const char* DigitsEnd(const char* at, const char* end) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  while (end - at >= 8) {
    uint64_t bytes;
    std::memcpy(&bytes, at, sizeof(bytes));
    bytes ^= kOnes * '0';  // digits become 0 to 9
    // A carry may only mark bytes behind the first that is no digit.
    const uint64_t no_digits = (bytes | (bytes + kOnes * (0x80 - 10))) & (kOnes << 7);
    if (no_digits != 0) return at + __builtin_ctzll(no_digits) / 8;
    at += 8;
  }
  while (at != end && IsDigit(*at)) ++at;
  return at;
}

bool EndsScalar(char c) { return std::string_view(",:]}) \n\r\t").find(c) != std::string_view::npos; }

struct Word {
  std::string_view text;
  Kind kind;
  JsonDialect first_dialect;
};
constexpr Word kWords[] = {
    {"null", Kind::kNull, JsonDialect::kStrict},      {"true", Kind::kTrue, JsonDialect::kStrict},
    {"false", Kind::kFalse, JsonDialect::kStrict},    {"NaN", Kind::kFloat, JsonDialect::kPython},
    {"Infinity", Kind::kFloat, JsonDialect::kPython}, {"None", Kind::kNull, JsonDialect::kLiteral},
    {"True", Kind::kTrue, JsonDialect::kLiteral},     {"False", Kind::kFalse, JsonDialect::kLiteral},
};

}  // namespace

bool JsonCursor::String(std::string_view* raw) {
  const char quote = Peek();
  if (quote != '"' && (quote != '\'' || dialect_ != JsonDialect::kLiteral)) return Fail("a string");
  const char* const start = ++at_;
  while (at_ != end_ && *at_ != quote) {
    if (*at_ == '\\' && ++at_ == end_) break;
    ++at_;
  }
  if (at_end()) return Fail("a quote");
  *raw = std::string_view(start, static_cast<size_t>(at_++ - start));
  return true;
}

bool JsonCursor::Scalar(JsonScalar* scalar) {
  const char first = Peek();
  const char* const start = at_;
  bool found = first == '-' || IsDigit(first) ? SkipNumber(&scalar->kind) : SkipKnownWord(&scalar->kind);
  if (dialect_ >= JsonDialect::kLenient && (!found || (!at_end() && !EndsScalar(*at_)))) {
    at_ = std::find_if(start, end_, EndsScalar);
    scalar->kind = Kind::kOther;
    found = at_ != start;
  }
  scalar->text = std::string_view(start, static_cast<size_t>(at_ - start));
  return found;
}

bool JsonCursor::Value(std::string_view* raw) {
  Peek();
  const char* const start = at_;
  if (!SkipValue(0)) return false;
  *raw = std::string_view(start, static_cast<size_t>(at_ - start));
  return true;
}

bool JsonCursor::SkipValue(int depth) {
  if (depth > kMaxDepth) return Fail("fewer levels");
  switch (Peek()) {
    case '{':
      return Object([&](std::string_view key) {
        return (dialect_ != JsonDialect::kStrict || IsJsonString(key)) && SkipValue(depth + 1);
      });
    case '(':
      if (dialect_ != JsonDialect::kLiteral) break;
      [[fallthrough]];
    case '[':
      return List([&] { return SkipValue(depth + 1); });
    case '\'':
      if (dialect_ != JsonDialect::kLiteral) break;
      [[fallthrough]];
    case '"': {
      std::string_view raw;
      return String(&raw) && (dialect_ != JsonDialect::kStrict || IsJsonString(raw));
    }
  }
  JsonScalar scalar;
  return Scalar(&scalar) && !at_end();
}

bool JsonCursor::SkipNumber(Kind* kind) {
  *kind = Kind::kInteger;
  const bool is_negative = *at_ == '-';
  if (is_negative) {
    ++at_;
    if (dialect_ != JsonDialect::kStrict && !at_end() && *at_ == 'I') {
      *kind = Kind::kFloat;
      return SkipWord("Infinity") || Fail("a digit");
    }
  }
  if (!at_end() && *at_ == '0') {
    ++at_;
  } else if (!SkipDigits()) {
    return false;
  }
  if (!at_end() && *at_ == '.') {
    *kind = Kind::kFloat;
    ++at_;
    if (!SkipDigits()) return false;
  }
  if (!at_end() && (*at_ == 'e' || *at_ == 'E')) {
    *kind = Kind::kFloat;
    ++at_;
    if (!at_end() && (*at_ == '+' || *at_ == '-')) ++at_;
    return SkipDigits();
  }
  return true;
}

bool JsonCursor::SkipDigits() {
  const char* const start = at_;
  at_ = DigitsEnd(at_, end_);
  return at_ != start || Fail("a digit");
}

bool JsonCursor::SkipKnownWord(Kind* kind) {
  for (const Word& word : kWords) {
    if (dialect_ < word.first_dialect || !SkipWord(word.text)) continue;
    *kind = word.kind;
    return true;
  }
  return Fail("a value");
}

// A word that the text's end cuts leads there.
bool JsonCursor::SkipWord(std::string_view word) {
  const std::string_view left(at_, std::min(static_cast<size_t>(end_ - at_), word.size()));
  if (word.substr(0, left.size()) != left) return false;
  at_ += left.size();
  return left.size() == word.size();
}

}  // namespace ott
