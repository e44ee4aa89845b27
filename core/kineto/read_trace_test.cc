#include "ott/core/kineto/read_trace.h"

#include <sys/stat.h>
#include <zlib.h>

#include <string>
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

std::string Packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
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
}

TEST(ReadTrace, ListsOfEventsAndCompressedFilesAreTheSame) {
  const std::string list = absl::StrCat("[", Named("a"), ",\n", Named("b"), "]");
  EXPECT_THAT(ReadFileOf(list).names, ElementsAre("a", "b"));
  EXPECT_THAT(ReadFileOf(Packed(list)).names, ElementsAre("a", "b"));
  // Compressed in two parts, as some tools do it in parallel.
  EXPECT_THAT(ReadFileOf(Packed(list.substr(0, 40)) + Packed(list.substr(40))).names, ElementsAre("a", "b"));
  // Padded, as tapes do it.
  const Read padded = ReadFileOf(Packed(list) + std::string(100, '\0'));
  EXPECT_THAT(padded.names, ElementsAre("a", "b"));
  EXPECT_THAT(padded.header.notes, IsEmpty());
  EXPECT_THAT(ReadFileOf("\xef\xbb\xbf " + list).names, ElementsAre("a", "b"));
}

TEST(ReadTrace, EventsBeyondWindowsAreWhole) {
  const std::string name(3'000'000, 'n');
  std::string list = absl::StrCat("[", Named("a"));
  for (int i = 0; i < 30'000; ++i) absl::StrAppend(&list, ",", Named("b"));
  const Read read = ReadFileOf(absl::StrCat(list, ",", Named(name), ",", Named("c"), "]"));
  ASSERT_EQ(read.names.size(), 30'003U);
  EXPECT_EQ(read.names[30'001], name);
  EXPECT_EQ(read.names[30'002], "c");
  EXPECT_THAT(read.header.notes, IsEmpty());
}

TEST(ReadTrace, OfATruncatedFileAllWholeEventsComeAndTheEndIsSaid) {
  const std::string whole = absl::StrCat("{\"traceEvents\": [", Named("a"), ", ", Named("b"), ", ",
                                         Named("c"), "], \"traceName\": \"t\"}");
  size_t most = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Read read = ReadFileOf(whole.substr(0, size));
    EXPECT_GE(read.names.size(), most) << size;
    most = std::max(most, read.names.size());
    if (read.names.empty()) {
      EXPECT_FALSE(read.status.ok()) << size;
    } else {
      ASSERT_EQ(read.header.notes.size(), 1U) << size;
      EXPECT_THAT(read.header.notes[0], HasSubstr("truncated at byte"));
    }
  }
  EXPECT_EQ(most, 3U);
  EXPECT_THAT(ReadFileOf(whole).header.notes, IsEmpty());
}

TEST(ReadTrace, OfATruncatedCompressedFileWhatIsThereComes) {
  std::string list = absl::StrCat("[", Named("first"));
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&list, ",", Named(absl::StrCat("op", i * 7919 % 10007)));
  const std::string packed = Packed(list + "]");
  const Read read = ReadFileOf(packed.substr(0, packed.size() / 2));
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_GT(read.names.size(), 1000U);
  ASSERT_EQ(read.header.notes.size(), 1U);
  EXPECT_THAT(read.header.notes[0], HasSubstr("the compressed file is truncated"));
  std::string damaged = packed;
  damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
  EXPECT_THAT(ReadFileOf(damaged).header.notes[0], HasSubstr("the compressed file is damaged"));
}

TEST(ReadTrace, WhatIsNoTraceIsAnError) {
  EXPECT_THAT(std::string(ReadFileOf("SQLite format 3").status.message()),
              HasSubstr("begins with neither { nor ["));
  EXPECT_THAT(std::string(ReadFileOf("").status.message()), HasSubstr("begins with neither"));
  EXPECT_THAT(std::string(ReadFileOf("{\"a\": 1}").status.message()), HasSubstr("has no traceEvents"));
  EXPECT_THAT(std::string(ReadFileOf("[{\"ph\":").status.message()),
              HasSubstr("ends before its first event"));
  const auto none = [](const Event&) {};
  EXPECT_EQ(ReadTrace("/no/such/file", none).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadTrace(::testing::TempDir(), none).status().message()),
              HasSubstr("no regular file"));
  const std::string pipe = ::testing::TempDir() + "/pipe.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadTrace(pipe, none).status().message()), HasSubstr("no regular file"));
}

// PyTorch 1.13 without Kineto writes it like this.
TEST(ReadTrace, ListsWithoutCategoriesAreOpsAndKernels) {
  const std::string list =
      R"([{"name": "aten::mm", "ph": "X", "ts": 9483, "dur": 95, "tid": 1, "pid": "CPU functions", "args": {}}, )"
      R"({"name": "ProfilerStep#3", "ph": "X", "ts": 9400, "dur": 500, "tid": 1, "pid": "CPU functions", "args": {}}, )"
      R"({"name": "gemm", "ph": "X", "ts": 9500, "dur": 5, "tid": 0, "pid": "CUDA functions", "args": {}}, )"
      R"({"name": "x", "ph": "X", "ts": 9500, "dur": 5, "tid": 0, "pid": "others", "args": {}}])";
  ASSERT_TRUE(WriteFileAtomically(TracePath(), list).ok());
  EXPECT_TRUE(IsTorchTrace(TracePath()));
  std::vector<Event::Kind> kinds;
  ASSERT_TRUE(ReadTrace(TracePath(), [&](const Event& event) { kinds.push_back(event.kind); }).ok());
  EXPECT_THAT(kinds, ElementsAre(Event::Kind::kOp, Event::Kind::kAnnotation, Event::Kind::kKernel,
                                 Event::Kind::kOther));
}

}  // namespace
}  // namespace ott::kineto
