// UTF-8 (RFC 3629) of texts that may hold any bytes.

#ifndef OTT_CORE_BASE_UTF8_H_
#define OTT_CORE_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ott {

// Bytes of the character that the text begins with; 0 if it begins with none.
// REQUIRES: the text is not empty.
size_t Utf8Length(std::string_view text);

// Bytes before the first that belongs to no character.
size_t ValidUtf8Length(std::string_view text);

// A surrogate is encoded like any other.
// REQUIRES: code < 0x200000
void AppendUtf8(uint32_t code, std::string& out);

// With U+FFFD for each byte that belongs to no character.
std::string ValidUtf8(std::string_view text);

}  // namespace ott

#endif  // OTT_CORE_BASE_UTF8_H_
