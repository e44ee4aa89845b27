#include "ott/core/base/text_table.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

TEST(TextTable, AlignsNamesLeftAndNumbersRightAndTheLastColumnAsItIsAskedFor) {
  TextTable left({"name", "mean", "where"}, TextTable::LastColumn::kLeft), right({"name", "mean"});
  EXPECT_TRUE(right.empty());
  right.AddRow({"forward", "1"});
  EXPECT_FALSE(right.empty());
  EXPECT_EQ(right.ToString(), "name     mean\nforward     1\n");
  left.AddRow({"forward", "1 ms", "rank 3"});
  left.AddRow({"a", "100 ms", ""});
  EXPECT_EQ(left.ToString(),
            "name       mean  where\n"
            "forward    1 ms  rank 3\n"
            "a        100 ms\n");
}

TEST(TextTable, CountsCharactersNotBytesAndKeepsARowOnOneLine) {
  TextTable table({"name", "x", ""}, TextTable::LastColumn::kLeft);
  table.AddRow({"größe", "1", ""});
  table.AddRow({"a\n\x1b[", "2", ""});
  EXPECT_EQ(table.ToString(), "name      x\ngröße     1\na\\n\\x1b[  2\n");
}

TEST(EscapeControlCharacters, NothingMovesTheCursorOrTurnsTheDirection) {
  const auto is_of = [](uint32_t code, uint32_t first, uint32_t last) {
    return first <= code && code <= last;
  };
  for (uint32_t code = 0; code < 0x3000; ++code) {
    std::string text;
    AppendUtf8(code, text);
    const bool turns = is_of(code, 0x80, 0x9f) || code == 0x61c || is_of(code, 0x200e, 0x200f) ||
                       is_of(code, 0x2028, 0x202e) || is_of(code, 0x2066, 0x2069);
    const std::string expected = code == '\n'                  ? "\\n"
                                 : code == '\t'                ? "\\t"
                                 : code == '\\'                ? "\\\\"
                                 : code < 0x20 || code == 0x7f ? absl::StrFormat("\\x%02x", code)
                                 : turns                       ? absl::StrFormat("\\u%04x", code)
                                                               : text;
    EXPECT_EQ(EscapeControlCharacters("a" + text + "b"), "a" + expected + "b") << code;
  }
}

TEST(EscapeControlCharacters, BytesThatAreNoCharacterStay) {
  EXPECT_EQ(EscapeControlCharacters("a\xff\xc3\nb\xe2\x80"), "a\xff\xc3\\nb\xe2\x80");
}

TEST(FormatSeconds, TheLargestUnitThatLeavesADigitBeforeThePointIsTakenAndFourDigitsAreShown) {
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    // Half of the numbers lie just below or above a power of ten.
    const double power = std::pow(10, static_cast<int>(random() % 17) - 12);
    const double seconds = power * (random() % 2 == 0 ? 1 + (static_cast<int>(random() % 200) - 99.5) * 1e-6
                                                      : 1 + random() % 9000 * 1e-3);
    std::string text, cell;
    for (const auto& [unit, scale] : {std::pair("s", 1.0), {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}}) {
      const double value = seconds * scale;
      text = absl::StrFormat("%.4g %s", value, unit);
      int num_decimals = 3;
      while (num_decimals > 1 && absl::StrFormat("%.*f", num_decimals, value).size() > 5) --num_decimals;
      cell = absl::StrFormat("%.*f %-2s", num_decimals, value, unit);
      if (std::stod(text) >= 1) break;
    }
    EXPECT_EQ(FormatSeconds(seconds), text);
    EXPECT_EQ(FormatSeconds(-seconds), "-" + text);
    EXPECT_EQ(FormatSecondsCell(seconds), cell);
    EXPECT_EQ(FormatSecondsCell(-seconds), "-" + cell);
  }
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSecondsCell(0), "0.000 s ");
  EXPECT_EQ(FormatSeconds(12.34567), "12.35 s");
  EXPECT_EQ(FormatSeconds(2.5e-8), "25 ns");
}

}  // namespace
}  // namespace ott
