#include "ott/core/base/utf8.h"

namespace ott {

size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool is_surrogate = lead == 0xed && byte(1) > 0x9f;
  const bool is_too_high = lead == 0xf4 && byte(1) > 0x8f;
  return is_overlong || is_surrogate || is_too_high ? 0 : length;
}

size_t ValidUtf8Length(std::string_view text) {
  size_t valid = 0;
  while (valid < text.size()) {
    const size_t length = Utf8Length(text.substr(valid));
    if (length == 0) break;
    valid += length;
  }
  return valid;
}

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int num_more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLead[num_more] | code >> (6 * num_more));
  for (int i = num_more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  while (true) {
    const size_t length = ValidUtf8Length(text);
    valid += text.substr(0, length);
    if (length == text.size()) return valid;
    valid += "\xef\xbf\xbd";
    text.remove_prefix(length + 1);
  }
}

}  // namespace ott
