#include "ott/core/base/utf8.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Utf8, CharactersStayAndOtherBytesAreReplaced) {
  EXPECT_EQ(ValidUtf8(""), "");
  EXPECT_EQ(ValidUtf8("plain"), "plain");
  EXPECT_EQ(ValidUtf8("\u00e4\u20ac\U0001f600"), "\u00e4\u20ac\U0001f600");
  EXPECT_EQ(ValidUtf8(std::string(1, '\0')), std::string(1, '\0'));
  EXPECT_EQ(ValidUtf8("a\xff"
                      "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(ValidUtf8("\xc3(a"), "\ufffd(a");
  EXPECT_EQ(ValidUtf8("\xe2\x82"), "\ufffd\ufffd");            // cut
  EXPECT_EQ(ValidUtf8("\xc0\xaf"), "\ufffd\ufffd");            // overlong
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
}

TEST(Utf8, EveryCharacterIsOneAndNoSurrogateIs) {
  std::string of_all_lengths;
  for (const uint32_t code : {0x41u, 0xe4u, 0x20acu, 0x1f600u}) AppendUtf8(code, of_all_lengths);
  EXPECT_EQ(of_all_lengths, "A\u00e4\u20ac\U0001f600");
  for (uint32_t code = 0; code < 0x120000; ++code) {
    std::string text;
    AppendUtf8(code, text);
    const bool is_character = code < 0x110000 && (code < 0xd800 || code > 0xdfff);
    ASSERT_EQ(Utf8Length(text), is_character ? text.size() : 0) << code;
    ASSERT_EQ(Utf8Length(text + "b"), is_character ? text.size() : 0) << code;
    if (text.size() == 1) continue;
    ASSERT_EQ(Utf8Length(text.substr(0, text.size() - 1)), 0) << code;
  }
}

}  // namespace
}  // namespace ott
