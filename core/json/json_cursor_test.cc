#include "ott/core/json/json_cursor.h"

#include <random>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using Kind = JsonScalar::Kind;
using testing::ElementsAre;

constexpr JsonDialect kDialects[] = {JsonDialect::kStrict, JsonDialect::kPython, JsonDialect::kLenient,
                                     JsonDialect::kLiteral};

bool IsValue(std::string_view text, JsonDialect dialect) {
  JsonCursor cursor(text, dialect);
  std::string_view raw;
  if (!cursor.Value(&raw)) return false;
  EXPECT_EQ(raw, text);
  return cursor.at_end();
}

TEST(JsonCursor, EveryDialectTakesJson) {
  for (const char* const text :
       {"{}", "[]", R"({"a": [1, -2.5e+3, true, false, null, "x\"y"], "b" : {"c":{}}})", "[[ ] , [\n0 ]]"}) {
    for (const JsonDialect dialect : kDialects) EXPECT_TRUE(IsValue(text, dialect)) << text;
  }
}

TEST(JsonCursor, WhatIsNotStructureStopsEveryDialect) {
  for (const char* const text : {"", "[", "[1", "[1,", "[,]", "{", "{1:2}", "{\"a\"}", "{\"a\":}", "[\"a]",
                                 "[\"\\", "{\"a\" 1}", "{121:2}"}) {
    for (const JsonDialect dialect : kDialects) EXPECT_FALSE(IsValue(text, dialect)) << text;
  }
}

TEST(JsonCursor, DialectsDifferInTheirScalars) {
  struct Case {
    const char* text;
    JsonDialect first_dialect;
  };
  const Case cases[] = {
      {"[NaN]", JsonDialect::kPython},
      {"[Infinity]", JsonDialect::kPython},
      {"[-Infinity]", JsonDialect::kPython},
      {"[nan]", JsonDialect::kLenient},
      {"[None, True, False]", JsonDialect::kLenient},
      {"[01]", JsonDialect::kLenient},
      {"[1.]", JsonDialect::kLenient},
      {"[0x1f]", JsonDialect::kLenient},
      {"[-]", JsonDialect::kLenient},
      {"[('a', {'b': None}), (1,), [True,],]", JsonDialect::kLiteral},
      {"[1,]", JsonDialect::kLiteral},
      {"{'b': 1}", JsonDialect::kLiteral},
  };
  for (const Case& c : cases) {
    for (const JsonDialect dialect : kDialects) {
      EXPECT_EQ(IsValue(c.text, dialect), dialect >= c.first_dialect) << c.text;
    }
  }
}

TEST(JsonCursor, OnlyTheStrictDialectLooksBetweenQuotes) {
  for (const char* const text :
       {"[\"\x01\"]", "[\"\xff\"]", R"(["\x"])", R"({"\u12":1})", R"({"a":"\ud83d"})"}) {
    EXPECT_FALSE(IsValue(text, JsonDialect::kStrict)) << text;
    EXPECT_TRUE(IsValue(text, JsonDialect::kPython)) << text;
  }
}

TEST(JsonCursor, AnyNumberIsReadUpToItsEndAndNotBeyondTheText) {
  const std::regex pattern(R"(-?(0|[0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]*)?)");
  std::mt19937 random(1);
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string buffer(2 + random() % 20, '9');
    for (char& c : buffer) c = "01234567890123456789-+..eEx]"[random() % 28];
    if (random() % 4 > 0) buffer[0] = '1';
    const std::string text = buffer.substr(0, 1 + random() % (buffer.size() - 1));
    if (text[0] != '-' && (text[0] < '0' || text[0] > '9')) continue;
    std::smatch match;
    ASSERT_TRUE(std::regex_search(text, match, pattern, std::regex_constants::match_continuous));
    const auto has_digit = [](const std::string& part) {
      return part.empty() || (part.back() >= '0' && part.back() <= '9');
    };
    std::string expected = match.str();
    const bool is_number = match.length(1) > 0 && has_digit(match.str(2)) && has_digit(match.str(3));
    const bool is_whole = is_number && (expected.size() == text.size() || text[expected.size()] == ']');
    Kind kind = match.length(2) + match.length(3) > 0 ? Kind::kFloat : Kind::kInteger;
    for (const JsonDialect dialect : kDialects) {
      const bool is_lenient = dialect >= JsonDialect::kLenient;
      if (is_lenient && !is_whole) expected = text.substr(0, text.find(']')), kind = Kind::kOther;
      JsonCursor cursor(std::string_view(buffer).substr(0, text.size()), dialect);
      JsonScalar scalar;
      ASSERT_EQ(cursor.Scalar(&scalar), is_number || is_lenient) << text;
      if (!is_number && !is_lenient) continue;
      EXPECT_EQ(scalar.text, expected) << text;
      EXPECT_EQ(scalar.kind, kind) << text;
    }
  }
}

TEST(JsonCursor, WordsHaveTheKindsOfTheirDialects) {
  for (const auto& [text, dialect, kind] : {std::tuple("-Infinity", JsonDialect::kPython, Kind::kFloat),
                                            {"NaN", JsonDialect::kPython, Kind::kFloat},
                                            {"null", JsonDialect::kStrict, Kind::kNull},
                                            {"true", JsonDialect::kStrict, Kind::kTrue},
                                            {"false", JsonDialect::kPython, Kind::kFalse},
                                            {"True", JsonDialect::kLenient, Kind::kOther},
                                            {"True", JsonDialect::kLiteral, Kind::kTrue},
                                            {"False", JsonDialect::kLiteral, Kind::kFalse},
                                            {"None", JsonDialect::kLiteral, Kind::kNull},
                                            {"nan", JsonDialect::kLiteral, Kind::kOther}}) {
    JsonScalar scalar;
    EXPECT_TRUE(JsonCursor(text, dialect).Scalar(&scalar)) << text;
    EXPECT_EQ(scalar.text, text);
    EXPECT_EQ(scalar.kind, kind) << text;
  }
}

TEST(JsonCursor, AScalarThatStopsSaysWhatWasExpectedWhere) {
  struct Case {
    const char* text;
    const char* expected;
    size_t position;
  };
  for (const Case& c : {Case{"-x", "a digit", 1},
                        {"1.x", "a digit", 2},
                        {"1e", "a digit", 2},
                        {"nul!", "a value", 0},
                        {"tru", "a value", 3},
                        {"-Inf", "a digit", 4}}) {
    JsonCursor cursor(c.text, JsonDialect::kPython);
    JsonScalar scalar;
    EXPECT_FALSE(cursor.Scalar(&scalar)) << c.text;
    EXPECT_STREQ(cursor.expected(), c.expected) << c.text;
    EXPECT_EQ(cursor.position(), c.position) << c.text;
  }
}

TEST(JsonCursor, VisitorsTakeTheValues) {
  JsonCursor cursor(R"( {"a\n": [1, [2, 3]], "b": {"c": "d"}} )", JsonDialect::kStrict);
  std::vector<std::string> seen;
  EXPECT_TRUE(cursor.Object([&](std::string_view key) {
    seen.emplace_back(key);
    std::string_view value;
    if (key == "b") return cursor.Value(&value) && (seen.emplace_back(value), true);
    return cursor.List([&] { return cursor.Value(&value) && (seen.emplace_back(value), true); });
  }));
  EXPECT_THAT(seen, ElementsAre("a\\n", "1", "[2, 3]", "b", R"({"c": "d"})"));
}

TEST(JsonCursor, NestingBeyondReasonIsNoValue) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); };
  EXPECT_TRUE(IsValue(nested(256), JsonDialect::kLenient));
  EXPECT_FALSE(IsValue(nested(257), JsonDialect::kLenient));
}

}  // namespace
}  // namespace ott
