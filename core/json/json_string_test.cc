#include "ott/core/json/json_string.h"

#include <cstdint>
#include <cstdio>
#include <utility>

#include "gtest/gtest.h"
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

std::string Escaped(std::string_view text, JsonCharset charset = JsonCharset::kUtf8) {
  std::string written(MaxEscapedJsonSize(text.size()), '#');
  written.resize(static_cast<size_t>(EscapeJson(text, written.data(), charset) - written.data()));
  std::string appended;
  AppendJsonString(text, appended, charset);
  EXPECT_EQ(appended, "\"" + written + "\"");
  return written;
}

TEST(EscapeJson, EscapesAtAnyPositionOfAnyLength) {
  const std::pair<std::string_view, std::string_view> escapes[] = {
      {"\"", "\\\""},      {"\\", "\\\\"},       {"\n", "\\n"}, {std::string_view("\0", 1), "\\u0000"},
      {"\x1f", "\\u001f"}, {"\x7f", "\\u007f"},  {" ", " "},    {"~", "~"},
      {"\xff", "\\ufffd"}, {"\u00e9", "\u00e9"}, {"/", "/"},
  };
  for (size_t length = 0; length < 20; ++length) {
    for (size_t position = 0; position <= length; ++position) {
      for (const auto& escape : escapes) {
        const auto around = [position, length](std::string_view inside) {
          return std::string(position, 'x') + std::string(inside) + std::string(length - position, 'y');
        };
        EXPECT_EQ(Escaped(around(escape.first)), around(escape.second));
      }
    }
  }
}

TEST(EscapeJson, CharactersBeyondAsciiAreEscapedAsPythonDoes) {
  const std::string_view text = "\u00e9\u20ac\uffff\U00010000\U0001f600\x7f\b\f\n\r\t/";
  EXPECT_EQ(Escaped(text, JsonCharset::kAscii),
            R"(\u00e9\u20ac\uffff\ud800\udc00\ud83d\ude00\u007f\b\f\n\r\t/)");
  EXPECT_EQ(Escaped(text), "\u00e9\u20ac\uffff\U00010000\U0001f600\\u007f\\b\\f\\n\\r\\t/");
}

TEST(EscapeJson, EachByteThatIsNotUtf8IsReplaced) {
  for (const JsonCharset charset : {JsonCharset::kUtf8, JsonCharset::kAscii}) {
    EXPECT_EQ(Escaped("\xc3x\xed\xa0\x80", charset), "\\ufffdx\\ufffd\\ufffd\\ufffd");
  }
}

TEST(UnescapeJson, UndoesWhatEscapeJsonDoes) {
  const std::string text = std::string("a\"\\\b\f\n\r\t\0\x1f\x7f/", 12) + "\u00e9\u20ac\U0001f600";
  for (const JsonCharset charset : {JsonCharset::kUtf8, JsonCharset::kAscii}) {
    EXPECT_EQ(UnescapedJson(Escaped(text, charset)), text);
    EXPECT_TRUE(IsJsonString(Escaped(text, charset)));
  }
}

TEST(UnescapeJson, AHighAndALowSurrogateAreOneCharacterAndNoOthersAre) {
  constexpr uint32_t kUnits[] = {0x41, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000};
  const auto is_within = [](uint32_t unit, uint32_t low, uint32_t high) {
    return low <= unit && unit <= high;
  };
  for (const uint32_t first : kUnits) {
    for (const uint32_t second : kUnits) {
      const bool is_pair = is_within(first, 0xd800, 0xdbff) && is_within(second, 0xdc00, 0xdfff);
      std::string expected = "x", text = "x";
      bool is_whole = true;
      for (const uint32_t unit : {first, second}) {
        const bool is_half = is_within(unit, 0xd800, 0xdfff);
        if (!is_pair) AppendUtf8(is_half ? 0xfffd : unit, expected);
        is_whole = is_whole && (is_pair || !is_half);
      }
      if (is_pair) AppendUtf8(0x10000 + (first - 0xd800) * 0x400 + (second - 0xdc00), expected);
      char raw[16];
      std::snprintf(raw, sizeof(raw), "\\u%04x\\u%04X", first, second);
      EXPECT_EQ(UnescapeJson(raw, text).what == nullptr, is_whole) << raw;
      EXPECT_EQ(text, expected) << raw;
    }
  }
}

TEST(UnescapeJson, TheFirstErrorIsNamedAndTheTextGoesOn) {
  struct Case {
    std::string_view raw;
    const char* what;
    size_t position;
    std::string_view text;
  };
  const Case cases[] = {
      {R"(a\qb)", "unknown escape", 2, "aqb"},
      {R"(\x41\U0001f600)", "unknown escape", 1, "A\U0001f600"},
      {R"(\xg1)", "unknown escape", 1, "\ufffdg1"},
      {R"(\U00110000)", "unknown escape", 1, "\ufffd"},
      {R"(\u12g4)", "expected four hexadecimal digits", 1, "\ufffd12g4"},
      {R"(\u12)", "expected four hexadecimal digits", 1, "\ufffd12"},
      {R"(\ud83d)", "half of a surrogate pair", 5, "\ufffd"},
      {R"(\ud83d\u0041)", "half of a surrogate pair", 5, "\ufffdA"},
      {R"(\ud83d\ud83d\ude00)", "half of a surrogate pair", 5, "\ufffd\U0001f600"},
      {R"(\ude00x)", "half of a surrogate pair", 5, "\ufffdx"},
      {"a\nb", "a control character in a string must be escaped", 1, "a\nb"},
      {"\\", "unknown escape", 0, "\\"},
  };
  for (const Case& c : cases) {
    std::string text;
    const JsonStringError error = UnescapeJson(c.raw, text);
    EXPECT_STREQ(error.what, c.what) << c.raw;
    EXPECT_EQ(error.position, c.position) << c.raw;
    EXPECT_EQ(text, c.text) << c.raw;
    EXPECT_FALSE(IsJsonString(c.raw)) << c.raw;
  }
  EXPECT_FALSE(IsJsonString("\xff")) << "no UTF-8";
}

}  // namespace
}  // namespace ott
