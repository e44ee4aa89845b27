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

}  // namespace
}  // namespace ott
