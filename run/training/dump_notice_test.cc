#include "ott/run/training/dump_notice.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

Selection Every(int64_t every) {
  SelectionOptions options;
  options.iterations.every = every;
  return *Selection::Create(options);
}

TEST(FormatDumpNotice, SaysWhatADumpTakesAndAThousandIterations) {
  DumpSize size;
  size.file_bytes = 48'000'000;
  EXPECT_EQ(
      FormatDumpNotice(size, Every(10), 0, 4),
      "ott: dumps: 48 MB an iteration on each of 4 ranks, in 100 of the first 1000 iterations: 4.8 GB a "
      "rank\n");
  EXPECT_EQ(FormatDumpNotice(size, Every(600), 1, 1),
            "ott: dumps: 48 MB an iteration, in 1 of the first 1000 iterations: 48 MB\n");
  size.file_bytes = 999'600'000'000;
  EXPECT_EQ(FormatDumpNotice(size, Every(1), 0, 1),
            "ott: dumps: 1 TB an iteration, in 1000 of the first 1000 iterations: 1 PB\n");
}

TEST(FormatDumpNotice, SaysHowToWriteLargeDataAsNumbers) {
  DumpSize size;
  size.file_bytes = 254'000'000;
  size.json_bytes = 253'000'000;
  size.tensor_bytes = 42'000'000;
  const std::string text = FormatDumpNotice(size, Every(10), 0, 2);
  EXPECT_NE(text.find("253 MB of that is JSON, the default format; dump { format_for_all: FORMAT_BINARY }"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("makes it some 42 MB"), std::string::npos) << text;
}

}  // namespace
}  // namespace ott
