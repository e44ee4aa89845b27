#include "ott/core/base/utf8.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace ott {
namespace {

std::string Encode(uint32_t code, int length) {
  if (length == 1) return std::string(1, static_cast<char>(code));
  std::string text(length, '\0');
  for (int i = length - 1; i > 0; --i, code >>= 6) text[i] = static_cast<char>(0x80 | (code & 0x3f));
  text[0] = static_cast<char>((0xf00 >> length) | code);
  return text;
}

TEST(Utf8, EveryCharacterHasOneLength) {
  for (uint32_t code = 0; code < 0x120000; ++code) {
    const bool is_character = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    const int shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int length = shortest; length <= 4; ++length) {
      const size_t expected = is_character && length == shortest ? length : 0;
      ASSERT_EQ(Utf8Length(Encode(code, length) + "x"), expected) << code << " in " << length << " bytes";
    }
    if (shortest == 1) continue;
    ASSERT_EQ(Utf8Length(Encode(code, shortest).substr(0, shortest - 1)), 0u) << code << ", cut";
  }
}

TEST(Utf8, WhatBeginsNoCharacterHasNoLength) {
  EXPECT_EQ(Utf8Length(""), 0u);
  for (const char* const text :
       {"\x80", "\xbf", "\xc2x", "\xe1\x80x", "\xf1\x80\x80x", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_EQ(Utf8Length(text), 0u) << text;
  }
}

}  // namespace
}  // namespace ott
