#include "ott/core/base/csv.h"

#include <utility>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(CsvField, QuotesWhatWouldBreakARowAndMakesATextOfWhatASpreadsheetWouldCalculate) {
  for (const auto& [text, field] : {std::pair("", ""),
                                    {"two words; 'three'", "two words; 'three'"},
                                    {"a,b", "\"a,b\""},
                                    {"say \"no\"", "\"say \"\"no\"\"\""},
                                    {"a\nb", "\"a\nb\""},
                                    {"a\r", "\"a\r\""},
                                    {"=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""},
                                    {"+1", "'+1"},
                                    {"-w", "'-w"},
                                    {"@sum", "'@sum"},
                                    {"\t=1", "'\t=1"},
                                    {"\r=1", "\"'\r=1\""},
                                    {"a=-1", "a=-1"}})
    EXPECT_EQ(CsvField(text), field);
}

}  // namespace
}  // namespace ott
