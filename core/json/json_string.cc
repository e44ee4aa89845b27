#include "ott/core/json/json_string.h"

#include <charconv>
#include <cstring>

#include "ott/core/base/utf8.h"

namespace ott {
namespace {

constexpr uint32_t kReplacement = 0xfffd;
constexpr std::string_view kEscapeNames = "\"\\/bfnrt";
constexpr std::string_view kEscapedCharacters = "\"\\/\b\f\n\r\t";

bool IsPlain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

// Eight bytes, of which the high bit tells whether one is not plain. Above such a byte another one may be
// taken for it, for a borrow or carry.
uint64_t NotPlain(const char* from) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  const uint64_t not_plain = bytes | (bytes + kOnes) | (bytes - kOnes * ' ') |
                             ((bytes ^ kOnes * '"') - kOnes) | ((bytes ^ kOnes * '\\') - kOnes);
  return not_plain & (kOnes << 7);
}

// Bytes before the first that is not plain.
size_t PlainLength(std::string_view text) {
  size_t length = 0;
  while (length + 8 <= text.size()) {
    if (const uint64_t not_plain = NotPlain(text.data() + length)) {
      return length + __builtin_ctzll(not_plain) / 8;
    }
    length += 8;
  }
  if (text.size() >= 8) {
    const uint64_t not_plain = NotPlain(text.data() + text.size() - 8);
    return not_plain == 0 ? text.size() : text.size() - 8 + __builtin_ctzll(not_plain) / 8;
  }
  while (length < text.size() && IsPlain(text[length])) ++length;
  return length;
}

char* Copy(std::string_view text, char* to) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

// The character of UTF-8 that is all of the text.
uint32_t Decode(std::string_view character) {
  uint32_t code = static_cast<uint8_t>(character[0]);
  if (character.size() > 1) code &= 0x7f >> character.size();
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3f);
  return code;
}

char* WriteUnit(uint32_t unit, char* to) {
  constexpr char kHex[] = "0123456789abcdef";
  to = Copy("\\u", to);
  for (int shift = 12; shift >= 0; shift -= 4) *to++ = kHex[unit >> shift & 15];
  return to;
}

// Writes the first character of the text, which is not plain, and takes it away. At most 12 bytes.
char* EscapeCharacter(std::string_view& text, char* to, JsonCharset charset) {
  const size_t length = Utf8Length(text);
  const std::string_view character = text.substr(0, length);
  text.remove_prefix(length == 0 ? 1 : length);
  if (length == 0) return WriteUnit(kReplacement, to);
  if (length > 1 && charset == JsonCharset::kUtf8) return Copy(character, to);
  if (const size_t i = kEscapedCharacters.find(character[0]); i != std::string_view::npos) {
    *to++ = '\\';
    *to++ = kEscapeNames[i];
    return to;
  }
  const uint32_t code = Decode(character);
  if (code < 0x10000) return WriteUnit(code, to);
  to = WriteUnit(0xd800 + ((code - 0x10000) >> 10), to);
  return WriteUnit(0xdc00 + ((code - 0x10000) & 0x3ff), to);
}

// Undoes escapes one by one.
class Unescaper {
 public:
  Unescaper(std::string_view raw, std::string& out) : raw_(raw), out_(out) {}

  JsonStringError Run() {
    while (true) {
      const size_t plain = PlainLength(raw_.substr(at_));
      out_.append(raw_, at_, plain);
      at_ += plain;
      if (at_ == raw_.size()) return error_;
      const char c = raw_[at_++];
      if (c == '\\') {
        Escape();
      } else {
        if (static_cast<uint8_t>(c) < ' ') Fail("a control character in a string must be escaped");
        out_ += c;
      }
    }
  }

 private:
  void Fail(const char* what) {
    if (error_.what == nullptr) error_ = {what, at_ - 1};
  }

  void Escape() {
    const char name = at_ < raw_.size() ? raw_[at_++] : '\0';
    if (name == '\0') {
      Fail("unknown escape");
      out_ += '\\';
    } else if (const size_t i = kEscapeNames.find(name); i != std::string_view::npos) {
      out_ += kEscapedCharacters[i];
    } else if (name == 'u') {
      Unicode();
    } else {
      Fail("unknown escape");
      uint32_t code = kReplacement;
      if (name == 'x' || name == 'U') {
        AppendUtf8(Hex(name == 'x' ? 2 : 8, &code) && code < 0x110000 ? code : kReplacement, out_);
      } else {
        out_ += name;
      }
    }
  }

  // After "\u".
  void Unicode() {
    uint32_t code = kReplacement;
    if (!Hex(4, &code)) {
      Fail("expected four hexadecimal digits");
    } else if (code >= 0xd800 && code <= 0xdfff) {
      const size_t after_first = at_;
      uint32_t low = 0;
      const bool is_pair =
          code <= 0xdbff && raw_.substr(at_, 2) == "\\u" && Hex(4, &low, 2) && low >= 0xdc00 && low <= 0xdfff;
      if (is_pair) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else {
        at_ = after_first;
        Fail("half of a surrogate pair");
        code = kReplacement;
      }
    }
    AppendUtf8(code, out_);
  }

  // Reads digits that follow `skipped` characters, and goes behind them.
  bool Hex(size_t num_digits, uint32_t* code, size_t skipped = 0) {
    const std::string_view digits = raw_.substr(at_ + skipped).substr(0, num_digits);
    if (digits.size() < num_digits) return false;
    const char* const end = digits.data() + num_digits;
    uint32_t value = 0;
    if (std::from_chars(digits.data(), end, value, 16).ptr != end) return false;
    *code = value;
    at_ += skipped + num_digits;
    return true;
  }

  const std::string_view raw_;
  std::string& out_;
  size_t at_ = 0;
  JsonStringError error_;
};

}  // namespace

char* EscapeJson(std::string_view text, char* to, JsonCharset charset) {
  while (true) {
    const size_t plain = PlainLength(text);
    to = Copy(text.substr(0, plain), to);
    text.remove_prefix(plain);
    if (text.empty()) return to;
    to = EscapeCharacter(text, to, charset);
  }
}

void AppendJsonString(std::string_view text, std::string& out, JsonCharset charset) {
  out += '"';
  while (true) {
    const size_t plain = PlainLength(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    char escaped[12];
    out.append(escaped, EscapeCharacter(text, escaped, charset));
  }
  out += '"';
}

JsonStringError UnescapeJson(std::string_view raw, std::string& out) { return Unescaper(raw, out).Run(); }

std::string UnescapedJson(std::string_view raw) {
  std::string text;
  UnescapeJson(raw, text);
  return text;
}

bool IsJsonString(std::string_view raw) {
  if (PlainLength(raw) == raw.size()) return true;
  std::string text;
  return UnescapeJson(raw, text).what == nullptr && ValidUtf8Length(raw) == raw.size();
}

}  // namespace ott
