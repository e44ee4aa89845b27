#include "ott/core/base/text_table.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(TextTable, AlignsNamesLeftAndNumbersRight) {
  TextTable table({"name", "mean", "where"}, TextTable::LastColumn::kLeft);
  table.AddRow({"forward", "1 ms", "rank 3"});
  table.AddRow({"a", "100 ms", ""});
  EXPECT_EQ(table.ToString(),
            "name       mean  where\n"
            "forward    1 ms  rank 3\n"
            "a        100 ms\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({"name", "x", ""}, TextTable::LastColumn::kLeft);
  table.AddRow({"größe", "1", ""});
  table.AddRow({"size5", "2", ""});
  EXPECT_EQ(table.ToString(), "name   x\ngröße  1\nsize5  2\n");
}

TEST(TextTable, KeepsARowOnOneLine) {
  TextTable table({"name", ""}, TextTable::LastColumn::kLeft);
  table.AddRow({"two\nlines\x1b[31m\\", ""});
  EXPECT_EQ(table.ToString(), "name\ntwo\\nlines\\x1b[31m\\\\\n");
}

TEST(EscapeControlCharacters, NothingMovesTheCursorOrTurnsTheDirection) {
  EXPECT_EQ(EscapeControlCharacters("a\u202e\u2066b\u200f\u061c"), "a\\u202e\\u2066b\\u200f\\u061c");
  EXPECT_EQ(EscapeControlCharacters("\u2028\u2029\u0085"), "\\u2028\\u2029\\u0085");
  EXPECT_EQ(EscapeControlCharacters("\xc2\x9b"
                                    "31m"),
            "\\u009b31m");
  EXPECT_EQ(EscapeControlCharacters("größe €\u2027\u00a0"), "größe €\u2027\u00a0");
}

TEST(TextTable, LastColumnIsToTheRightUnlessAskedFor) {
  TextTable table({"name", "mean"});
  EXPECT_TRUE(table.empty());
  table.AddRow({"forward", "1"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.ToString(), "name     mean\nforward     1\n");
}

TEST(FormatSeconds, ChoosesTheUnit) {
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(12.34567), "12.35 s");
  EXPECT_EQ(FormatSeconds(0.0123456), "12.35 ms");
  EXPECT_EQ(FormatSeconds(0.000999999), "1 ms");
  EXPECT_EQ(FormatSeconds(-1.5e-6), "-1.5 us");
  EXPECT_EQ(FormatSeconds(2.5e-8), "25 ns");
}

TEST(FormatSecondsCell, ChoosesTheUnitThatLeavesOneToThreeDigitsBeforeThePoint) {
  EXPECT_EQ(FormatSecondsCell(0), "0.000 s ");
  EXPECT_EQ(FormatSecondsCell(1.5e-9), "1.500 ns");
  EXPECT_EQ(FormatSecondsCell(2e-12), "0.002 ns");
  EXPECT_EQ(FormatSecondsCell(12.34e-6), "12.34 us");
  EXPECT_EQ(FormatSecondsCell(99.94e-6), "99.94 us");
  EXPECT_EQ(FormatSecondsCell(0.9999e-3), "999.9 us");
  EXPECT_EQ(FormatSecondsCell(0.99999e-3), "1.000 ms");
  EXPECT_EQ(FormatSecondsCell(9.99996), "10.00 s ");
  EXPECT_EQ(FormatSecondsCell(12345.6), "12345.6 s ");
}

}  // namespace
}  // namespace ott
