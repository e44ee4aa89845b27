#include "ott/core/base/csv.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(CsvField, OnlyWhatWouldBreakARowIsQuoted) {
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("two words; 'three'"), "two words; 'three'");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"no\""), "\"say \"\"no\"\"\"");
  EXPECT_EQ(CsvField("a\nb"), "\"a\nb\"");
  EXPECT_EQ(CsvField("a\r"), "\"a\r\"");
}

TEST(CsvField, WhatASpreadsheetWouldCalculateIsText) {
  EXPECT_EQ(CsvField("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  EXPECT_EQ(CsvField("+1"), "'+1");
  EXPECT_EQ(CsvField("-w"), "'-w");
  EXPECT_EQ(CsvField("@sum"), "'@sum");
  EXPECT_EQ(CsvField("\t=1"), "'\t=1");
  EXPECT_EQ(CsvField("\r=1"), "\"'\r=1\"");
  EXPECT_EQ(CsvField("a=-1"), "a=-1");
}

}  // namespace
}  // namespace ott
