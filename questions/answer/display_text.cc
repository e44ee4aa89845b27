#include "ott/questions/answer/display_text.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ott/core/base/text_table.h"
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

constexpr size_t kMaxCharacters = 120;

bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// Returns the bytes of the last characters. REQUIRES: there are so many.
size_t LastBytes(const std::string& text, size_t num_characters) {
  size_t bytes = 0;
  while (num_characters > 0) {
    ++bytes;
    if (BeginsCharacter(text[text.size() - bytes])) --num_characters;
  }
  return bytes;
}

}  // namespace

std::string DisplayName(std::string_view name) {
  // Text that is cut away is not looked at: names may be of any length.
  constexpr size_t kMaxBytes = 8 * kMaxCharacters;
  const std::string valid = name.size() > 2 * kMaxBytes ? ValidUtf8(name.substr(0, kMaxBytes)) +
                                                              ValidUtf8(name.substr(name.size() - kMaxBytes))
                                                        : ValidUtf8(name);
  const std::string text = EscapeControlCharacters(valid);
  if (FirstBytes(text, kMaxCharacters) == text.size()) return text;
  return absl::StrCat(text.substr(0, FirstBytes(text, kMaxCharacters * 2 / 3)), "\u2026",
                      text.substr(text.size() - LastBytes(text, kMaxCharacters / 3 - 1)));
}

std::string DisplayLines(std::string_view text, size_t max_bytes) {
  std::string valid = ValidUtf8(text.substr(0, max_bytes));
  if (text.size() > max_bytes)
    absl::StrAppend(&valid, "\n... and ", text.size() - max_bytes, " more bytes\n");
  return EscapeDirections(valid);
}

size_t FirstBytes(std::string_view text, size_t num_characters) {
  size_t bytes = 0;
  while (bytes < text.size() && (num_characters > 0 || !BeginsCharacter(text[bytes]))) {
    if (BeginsCharacter(text[bytes])) --num_characters;
    ++bytes;
  }
  return bytes;
}

double Rounded(double value, int digits) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  if (value == 0) return 0;
  digits -= 1 + static_cast<int>(std::floor(std::log10(std::abs(value))));
  // Beyond, the factor itself would be no number.
  if (digits > 300 || digits < -300) return value;
  const double factor = std::pow(10, std::abs(digits));
  return digits >= 0 ? std::round(value * factor) / factor : std::round(value / factor) * factor;
}

}  // namespace ott
