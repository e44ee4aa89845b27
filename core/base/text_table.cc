#include "ott/core/base/text_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/check.h"
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

// Code points, which are columns for all but the rarest names.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

struct ScaledSeconds {
  double value;
  const char* unit;
};

// In the unit that leaves one to three digits before the point, once rounded to four digits.
ScaledSeconds Scale(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude == 0 || magnitude >= 0.99995) return {seconds, "s"};
  if (magnitude >= 0.99995e-3) return {seconds * 1e3, "ms"};
  if (magnitude >= 0.99995e-6) return {seconds * 1e6, "us"};
  return {seconds * 1e9, "ns"};
}

// Unicode's control characters beyond ASCII, its marks, embeddings, overrides and isolates of direction, and
// its line and paragraph separators.
bool MovesOrTurnsText(uint32_t code) {
  return (code >= 0x80 && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

TextTable::TextTable(std::vector<std::string> header, LastColumn last_column) : last_column_(last_column) {
  rows_.push_back(std::move(header));
}

void TextTable::AddRow(std::vector<std::string> cells) {
  OTT_CHECK(cells.size() == rows_.front().size()) << cells.size() << " cells";
  for (std::string& cell : cells) cell = EscapeControlCharacters(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], Width(row[column]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - Width(row[column]), ' ');
      const bool flush_left = column == 0 || (column + 1 == row.size() && last_column_ == LastColumn::kLeft);
      absl::StrAppend(&text, column == 0 ? "" : "  ",
                      flush_left ? row[column] : absl::StrCat(padding, row[column]),
                      flush_left ? padding : "");
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text.push_back('\n');
  }
  return text;
}

std::string EscapeDirections(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    // The characters that are looked for have two or three bytes.
    const size_t size = std::max<size_t>(1, Utf8Length(text));
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const uint32_t code = size == 2   ? (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu)
                          : size == 3 ? (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu)
                                      : 0;
    if (MovesOrTurnsText(code)) {
      absl::StrAppendFormat(&escaped, "\\u%04x", code);
    } else {
      escaped.append(text.substr(0, size));
    }
    text.remove_prefix(size);
  }
  return escaped;
}

std::string EscapeControlCharacters(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\t') {
      escaped += "\\t";
    } else if (c == '\\') {
      escaped += "\\\\";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&escaped, "\\x%02x", byte);
    } else {
      escaped += c;
    }
  }
  return EscapeDirections(escaped);
}

std::string FormatSeconds(double seconds) {
  const ScaledSeconds scaled = Scale(seconds);
  return absl::StrFormat("%.4g %s", scaled.value, scaled.unit);
}

std::string FormatSecondsCell(double seconds) {
  const ScaledSeconds scaled = Scale(seconds);
  const double magnitude = std::abs(scaled.value);
  const int num_decimals = magnitude < 9.9995 ? 3 : magnitude < 99.995 ? 2 : 1;
  return absl::StrFormat("%.*f %-2s", num_decimals, scaled.value, scaled.unit);
}

}  // namespace ott
