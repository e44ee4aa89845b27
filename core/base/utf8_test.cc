#include "ott/core/base/utf8.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Utf8, CharactersStayAndOtherBytesAreReplaced) {
  for (const auto& [text, valid] : {std::pair("", ""),
                                    {"\u00e4\u20ac\U0001f600", "\u00e4\u20ac\U0001f600"},
                                    {"\xff!", "\ufffd!"},
                                    {"\xc3(a", "\ufffd(a"},
                                    {"\xe2\x82", "\ufffd\ufffd"}})
    EXPECT_EQ(ValidUtf8(text), valid);
  EXPECT_EQ(ValidUtf8(std::string(1, '\0')), std::string(1, '\0'));
}

// Bytes are a character if its code is written with them.
TEST(Utf8, OfAnyBytesAtTheirBordersThoseOfACharacterAreOne) {
  std::string of_all_lengths;
  for (const uint32_t code : {0x41u, 0xe4u, 0x20acu, 0x1f600u}) AppendUtf8(code, of_all_lengths);
  EXPECT_EQ(of_all_lengths, "A\u00e4\u20ac\U0001f600");
  const std::string borders =
      "A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff";
  const size_t num_borders = borders.size();
  for (size_t number = 0; number < num_borders * num_borders * num_borders * num_borders; ++number) {
    std::string bytes;
    for (size_t rest = number; bytes.size() < 4; rest /= num_borders) bytes += borders[rest % num_borders];
    size_t expected = 0;
    for (size_t length = 1; length <= 4; ++length) {
      uint32_t code = static_cast<uint8_t>(bytes[0]) & (length == 1 ? 0x7f : 0x7f >> length);
      for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(bytes[i]) & 0x3f);
      std::string text;
      AppendUtf8(code, text);
      const bool is_character = code < 0x110000 && (code < 0xd800 || code > 0xdfff);
      if (is_character && text == bytes.substr(0, length)) expected = length;
    }
    // Nothing behind them is read.
    for (size_t size = 1; size <= 4; ++size)
      ASSERT_EQ(Utf8Length(std::string_view(bytes).substr(0, size)), size < expected ? 0 : expected)
          << number;
  }
}

}  // namespace
}  // namespace ott
