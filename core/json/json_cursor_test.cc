#include "ott/core/json/json_cursor.h"

#include <string>
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
  for (const char* const text :
       {"", "[", "[1", "[1,", "[,]", "{", "{1:2}", "{\"a\"}", "{\"a\":}", "[\"a]", "[\"\\", "{\"a\" 1}"}) {
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

TEST(JsonCursor, ScalarsKeepTheirText) {
  const auto kind_of = [](std::string_view text, JsonDialect dialect) {
    JsonCursor cursor(text, dialect);
    JsonScalar scalar;
    EXPECT_TRUE(cursor.Scalar(&scalar)) << text;
    EXPECT_EQ(scalar.text, text);
    return scalar.kind;
  };
  EXPECT_EQ(kind_of("-12", JsonDialect::kStrict), Kind::kInteger);
  EXPECT_EQ(kind_of("1e5", JsonDialect::kStrict), Kind::kFloat);
  EXPECT_EQ(kind_of("-Infinity", JsonDialect::kPython), Kind::kFloat);
  EXPECT_EQ(kind_of("false", JsonDialect::kPython), Kind::kFalse);
  EXPECT_EQ(kind_of("0x1f", JsonDialect::kLenient), Kind::kOther);
  EXPECT_EQ(kind_of("None", JsonDialect::kLiteral), Kind::kNull);
  EXPECT_EQ(kind_of("nan", JsonDialect::kLiteral), Kind::kOther);
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
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(IsValue(nested(200), JsonDialect::kLenient));
  EXPECT_FALSE(IsValue(nested(100'000), JsonDialect::kLenient));
}

}  // namespace
}  // namespace ott
