#include "ott/core/kineto/read_trace.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"

namespace ott::kineto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TracePath() {
  return absl::StrCat(::testing::TempDir(), "/",
                      ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".json");
}

struct Read {
  absl::Status status;
  std::vector<std::string> names;
  TraceHeader header;
};

Read ReadFileOf(const std::string& contents) {
  EXPECT_TRUE(WriteFileAtomically(TracePath(), contents).ok());
  Read result;
  auto header = ReadTrace(TracePath(), [&](const Event& event) { result.names.emplace_back(event.name); });
  result.status = header.status();
  if (header.ok()) result.header = *std::move(header);
  return result;
}

std::string Named(const std::string& name) {
  return absl::StrCat(R"({"ph":"X","cat":"cpu_op","ts":1,"dur":1,"name":")", name, R"("})");
}

TEST(ReadTrace, WhatIsWrongInAHeaderIsLeftOutAndSaid) {
  const auto header = [](const std::string& members) {
    return ReadFileOf(absl::StrCat("{", members, R"(, "traceEvents": [)", Named("a"), "]}")).header;
  };
  EXPECT_EQ(header(R"("baseTimeNanoseconds": 1)").base_nanoseconds, 1);
  for (const char* const base : {"0", "-5", "null"}) {
    const TraceHeader read = header(absl::StrCat(R"("baseTimeNanoseconds": )", base));
    EXPECT_EQ(read.base_nanoseconds, 0);
    EXPECT_THAT(read.notes, ElementsAre("baseTimeNanoseconds is no time")) << base;
  }
  EXPECT_THAT(header(R"("deviceProperties": [1 2])").notes, ElementsAre("deviceProperties is no JSON"));
  EXPECT_EQ(header(R"("distributedInfo": {})").rank, -1);
  EXPECT_EQ(header(R"("distributedInfo": {"rank": 3}, "other": {"rank": 5})").rank, 3);
  for (const auto& [number, read] :
       {std::pair("1073741824", 1 << 30), {"0", 0}, {"1073741825", -1}, {"-5", -1}})
    EXPECT_EQ(header(absl::StrCat(R"("distributedInfo": {"rank": )", number, "}")).rank, read);
}

TEST(ReadTrace, WhatIsNoTraceIsAnError) {
  EXPECT_THAT(std::string(ReadFileOf("SQLite format 3").status.message()),
              HasSubstr(".json: is no JSON of torch.profiler: begins with neither { nor ["));
  EXPECT_THAT(std::string(ReadFileOf("").status.message()), HasSubstr("begins with neither"));
  EXPECT_THAT(std::string(ReadFileOf("{\"a\": 1}").status.message()), HasSubstr("has no traceEvents"));
  EXPECT_THAT(std::string(ReadFileOf("[{\"ph\":").status.message()),
              HasSubstr("ends before its first event"));
  EXPECT_THAT(std::string(ReadFileOf("\x1f\x8bno").status.message()),
              HasSubstr(".json: the compressed file is damaged; is no JSON of torch.profiler"));
  EXPECT_FALSE(IsTorchTrace(TracePath()));
  EXPECT_TRUE(absl::IsNotFound(ReadTrace("/no/such/file", [](const Event&) {}).status()));
  EXPECT_FALSE(IsTorchTrace("/no/such/file"));
  EXPECT_THAT(ReadFileOf(absl::StrCat("[", Named("a"), "]")).header.notes, IsEmpty());
  const Read cut = ReadFileOf(absl::StrCat("[", Named("a"), ",{}, nul{"));
  EXPECT_THAT(cut.names, ElementsAre("a", ""));
  EXPECT_THAT(cut.header.notes, ElementsAre(HasSubstr("truncated at byte"), HasSubstr("3 bytes between")));
  EXPECT_TRUE(IsTorchTrace(TracePath()));
}

}  // namespace
}  // namespace ott::kineto
