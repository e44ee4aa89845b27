#include "tools/report/display_text.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ott/core/base/text_table.h"
#include "ott/core/base/utf8.h"

namespace ott::report {
namespace {

constexpr size_t kMaxCharacters = 120;

// Unicode's marks, embeddings, overrides and isolates of direction, and its line and paragraph separators.
std::string EscapeDirections(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\u200e", "\\u200e"},
                                    {"\u200f", "\\u200f"},
                                    {"\u061c", "\\u061c"},
                                    {"\u2028", "\\u2028"},
                                    {"\u2029", "\\u2029"},
                                    {"\u202a", "\\u202a"},
                                    {"\u202b", "\\u202b"},
                                    {"\u202c", "\\u202c"},
                                    {"\u202d", "\\u202d"},
                                    {"\u202e", "\\u202e"},
                                    {"\u2066", "\\u2066"},
                                    {"\u2067", "\\u2067"},
                                    {"\u2068", "\\u2068"},
                                    {"\u2069", "\\u2069"}});
}

bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// So many characters at the beginning or at the end.
size_t LastBytes(const std::string& text, size_t num_characters) {
  size_t bytes = 0;
  while (bytes < text.size() && num_characters > 0) {
    ++bytes;
    if (BeginsCharacter(text[text.size() - bytes])) --num_characters;
  }
  return bytes;
}

}  // namespace

std::string DisplayName(std::string_view name) {
  // What is cut away is not looked at: names may be of any length.
  constexpr size_t kMaxBytes = 8 * kMaxCharacters;
  const std::string valid = name.size() > 2 * kMaxBytes ? ValidUtf8(name.substr(0, kMaxBytes)) +
                                                              ValidUtf8(name.substr(name.size() - kMaxBytes))
                                                        : ValidUtf8(name);
  const std::string text = EscapeDirections(EscapeControlCharacters(valid));
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

std::string WithoutNewline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
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

}  // namespace ott::report
