#include "ott/core/base/text_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "gtest/gtest.h"

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
  EXPECT_EQ(EscapeControlCharacters("a\u202e\u2066b\u200f\u061c"), "a\\u202e\\u2066b\\u200f\\u061c");
  EXPECT_EQ(EscapeControlCharacters("\u2028\u2029\u0085"), "\\u2028\\u2029\\u0085");
  EXPECT_EQ(EscapeControlCharacters("\xc2\x9b"
                                    "31m"),
            "\\u009b31m");
  EXPECT_EQ(EscapeControlCharacters("größe €\u2027\u00a0"), "größe €\u2027\u00a0");
}

TEST(FormatSeconds, TheUnitLeavesOneToThreeDigitsBeforeThePointAndFourAreShown) {
  const std::map<std::string, double> units = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    // Half of the numbers lie just below or above a power of ten.
    const double power = std::pow(10, static_cast<int>(random() % 17) - 12);
    const double seconds = power * (random() % 2 == 0 ? 1 + (static_cast<int>(random() % 201) - 100) * 1e-6
                                                      : 1 + random() % 9000 * 1e-3);
    for (const bool is_cell : {false, true}) {
      const std::string text = is_cell ? FormatSecondsCell(seconds) : FormatSeconds(seconds);
      EXPECT_EQ(is_cell ? FormatSecondsCell(-seconds) : FormatSeconds(-seconds), "-" + text);
      const std::string number = text.substr(0, text.find(' '));
      const std::string unit =
          text.substr(number.size() + 1, text.find(' ', number.size() + 1) - number.size() - 1);
      ASSERT_EQ(units.count(unit), 1u) << text;
      EXPECT_EQ(text.size(), number.size() + 1 + (is_cell ? 2 : unit.size())) << text;
      const double value = std::stod(number), scale = units.at(unit);
      EXPECT_NEAR(value * scale, seconds, 0.50001e-3 * std::max(seconds, is_cell ? 1e-9 : 0)) << text;
      if (unit != "ns") {
        EXPECT_GE(value, 1) << text;
      }
      if (unit != "s") {
        EXPECT_LT(value, 1000) << text;
      }
      if (!is_cell) continue;
      const size_t num_digits = value < 1 ? 4 : value < 1000 ? 4 : static_cast<size_t>(std::log10(value)) + 2;
      EXPECT_EQ(number.size(), num_digits + 1) << text;
    }
  }
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSecondsCell(0), "0.000 s ");
  EXPECT_EQ(FormatSeconds(12.34567), "12.35 s");
  EXPECT_EQ(FormatSeconds(2.5e-8), "25 ns");
}

}  // namespace
}  // namespace ott
