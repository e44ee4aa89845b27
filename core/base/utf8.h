// Which bytes are text.

#ifndef OTT_CORE_BASE_UTF8_H_
#define OTT_CORE_BASE_UTF8_H_

#include <cstddef>
#include <string_view>

namespace ott {

// Bytes of the UTF-8 character that the text begins with; 0 if it begins with none: a sequence that is cut or
// longer than need be, a surrogate, what is above U+10FFFF (Unicode 15, table 3-7), or the end.
inline size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto is_in = [](unsigned value, unsigned first, unsigned last) {
    return value >= first && value <= last;
  };
  const auto continues = [&](size_t i) { return is_in(byte(i), 0x80, 0xbf); };
  const unsigned lead = byte(0);
  if (text.empty()) return 0;
  if (lead < 0x80) return 1;
  if (is_in(lead, 0xc2, 0xdf)) return continues(1) ? 2 : 0;
  if (is_in(lead, 0xe0, 0xef)) {
    const bool second = is_in(byte(1), lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf);
    return second && continues(2) ? 3 : 0;
  }
  if (is_in(lead, 0xf0, 0xf4)) {
    const bool second = is_in(byte(1), lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace ott

#endif  // OTT_CORE_BASE_UTF8_H_
