#include "ott/core/profile/trace_encoder.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "ott/core/base/utf8.h"

namespace ott::internal {
namespace {

bool IsPlain(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

void AppendEscaped(char c, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
    case '\\':
      out += '\\';
      out += c;
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += kHex[static_cast<uint8_t>(c) >> 4];
      out += kHex[c & 15];
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = Utf8Length(text);
    if (length == 1) {
      AppendEscaped(text[0], out);
    } else {
      out += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void AppendNumber(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
  } else if (std::isinf(value)) {
    out += value > 0 ? "inf" : "-inf";
  } else {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }
}

}  // namespace ott::internal
