#include "ott/core/trace/trace_reader.h"

#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/trace/trace_file.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kInfo[] = R"({"rank":3,"host":"node7","window":"2","clock":{"begin_nanoseconds":"5"}})";

class TraceReaderTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Path() const { return ::testing::TempDir() + "/" + GetParam(); }

  static std::vector<TraceEvent> Events() {
    std::vector<TraceEvent> events(5);
    events[0].name = "forward \"quoted\"\n\xE2\x82\xAC";
    events[0].category = "stopwatch";
    events[0].start = 1'234'567;
    events[0].duration = 89;
    events[0].args = R"({"shape":[[32,128],[64]],"text":"}],\""})";
    events[0].flow = TraceEvent::Flow::kStart;
    events[0].flow_id = 0xABCDEF0123456789;
    events[1] = events[0];
    events[1].type = TraceEvent::Type::kOverlappingSlice;
    events[1].flow = TraceEvent::Flow::kNone;
    events[1].flow_id = 0;
    events[2].type = TraceEvent::Type::kMark;
    events[2].name = "mark";
    events[2].start = -1'000'001;
    events[3].type = TraceEvent::Type::kCounter;
    events[3].name = "loss";
    events[3].value = 0.1;
    events[4].name = "LinearBackward0";
    events[4].start = 9'007'199'254'740'993;
    events[4].flow = TraceEvent::Flow::kFinish;
    events[4].flow_id = 12;
    for (TraceEvent& event : events) {
      event.process = 3;
      event.track = 42;
    }
    return events;
  }

  void Write() const {
    const auto file = TraceFile::Create(Path(), kInfo).value();
    file->Add(TraceProcess{3, "rank 3", "", 3});
    file->Add(TraceTrack{3, 42, "main \"thread\"", 7});
    for (const TraceEvent& event : Events()) file->Add(event);
    ASSERT_EQ(file->Commit(), absl::OkStatus());
  }
};

INSTANTIATE_TEST_SUITE_P(Files, TraceReaderTest, ::testing::Values("trace.json", "trace.json.gz"),
                         [](const auto& info) { return info.index == 0 ? "Plain" : "Compressed"; });

TEST_P(TraceReaderTest, ReadsWhatWasWritten) {
  Write();
  const Trace trace = ReadTrace(Path()).value();
  EXPECT_THAT(trace.cut, IsEmpty());
  EXPECT_EQ(trace.info.rank(), 3);
  EXPECT_EQ(trace.info.window(), 2);
  EXPECT_EQ(trace.info.clock().begin_nanoseconds(), 5);
  EXPECT_EQ(ReadTraceInfo(Path())->host(), "node7");
  ASSERT_EQ(trace.tracks.size(), 1);
  EXPECT_EQ(trace.tracks[0].name, "main \"thread\"");
  EXPECT_EQ(trace.tracks[0].sort_index, 7);
  const std::vector<TraceEvent> expected = Events();
  ASSERT_EQ(trace.events.size(), expected.size());
  const auto fields = [](const TraceEvent& of) {
    return std::tuple(of.type, of.process, of.track, of.name, of.category, of.start, of.duration, of.args,
                      of.value, of.flow, of.flow_id);
  };
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(fields(trace.events[i]), fields(expected[i])) << i;
}

TEST_P(TraceReaderTest, OfATruncatedFileEveryWholeEventIsKept) {
  Write();
  const auto size = std::filesystem::file_size(Path());
  size_t last = Events().size();
  for (auto left = size - 1; left > 0; --left) {
    std::filesystem::resize_file(Path(), left);
    const absl::StatusOr<Trace> trace = ReadTrace(Path());
    if (!trace.ok()) {
      EXPECT_THAT(std::string(trace.status().message()), HasSubstr(Path()));
      last = 0;
      continue;
    }
    EXPECT_LE(trace->events.size(), last) << left;
    last = trace->events.size();
    // All of the text but its last newline, or all but a checksum.
    if (left + 10 < size) {
      EXPECT_THAT(trace->cut, AllOf(HasSubstr(Path()), HasSubstr("truncated"))) << left;
    }
  }
  EXPECT_EQ(last, 0);
}

TEST_P(TraceReaderTest, AFullDiskLeavesNoFileAndSaysSo) {
  struct rlimit original;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &original), 0);
  struct rlimit small = original;
  small.rlim_cur = 100;
  std::filesystem::remove(Path());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  absl::Status written;
  {
    const auto file = TraceFile::Create(Path(), kInfo);
    for (int i = 0; i < 10'000; ++i) {
      for (const TraceEvent& event : Events()) (*file)->Add(event);
    }
    written = (*file)->Commit();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &original), 0);
  EXPECT_FALSE(written.ok());
  EXPECT_THAT(std::string(written.message()), AllOf(HasSubstr(Path()), HasSubstr("ulimit -f")));
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST(TraceReader, DamageIsNamedWithItsPlace) {
  const absl::StatusOr<Trace> trace =
      ParseTrace(R"({"traceEvents":[{"ph":"X","name":"a"},{"ph":oops}]})", "t.json");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->events.size(), 1);
  EXPECT_THAT(trace->cut, IsEmpty());  // oops could be a literal
  const absl::StatusOr<Trace> damaged = ParseTrace(R"({"traceEvents":[{"ph":"X","name":"a"},!]})", "t.json");
  ASSERT_TRUE(damaged.ok());
  EXPECT_EQ(damaged->events.size(), 1);
  EXPECT_THAT(damaged->cut, HasSubstr("t.json: damaged: 1 bytes between events are no JSON"));
}

TEST(TraceReader, WhatIsNoTraceIsAnError) {
  for (const char* text : {"", "no json", "{", "[", R"({"a":)"}) {
    EXPECT_EQ(ParseTrace(text, "t.json").status().code(), absl::StatusCode::kDataLoss) << text;
  }
  EXPECT_EQ(ReadTrace("/none/trace.json").status().code(), absl::StatusCode::kNotFound);
}

TEST(TraceReader, TracesOfOthersAreReadAndFlowsThatBeginWithTheSliceBeforeThem) {
  const std::string flows[] = {R"("ts":1.5e3,"pid":7,"tid":8)", R"("ts":2,"pid":7,"tid":8)",
                               R"("ts":1.5e3,"pid":6,"tid":8)", R"("ts":1.5e3,"pid":7,"tid":9)"};
  for (const std::string& flow : flows) {
    const Trace trace =
        ParseTrace(
            R"([ {"name": "aten::mm", "ph": "X", "ts": 1.5e3, "dur": 2, "pid": "7", "tid": 8, "args": {}} ,
             {"ph": "?", "name": "other"}, {"ph":"s","id":3,)" +
                flow + "} ]",
            "t.json")
            .value();
    ASSERT_EQ(trace.events.size(), 1);
    EXPECT_EQ(trace.events[0].start, 1'500'000);
    EXPECT_EQ(trace.events[0].duration, 2000);
    EXPECT_EQ(trace.events[0].process, 7);
    EXPECT_EQ(trace.events[0].flow, flow == flows[0] ? TraceEvent::Flow::kStart : TraceEvent::Flow::kNone);
  }
}

TEST(TraceReader, ArgumentsThatAreNoJsonAreLeftOut) {
  const auto is_kept = [](const std::string& args) {
    const std::string text = R"([{"name":"a","ph":"i","args":)" + args + "}]";
    const absl::StatusOr<Trace> trace = ParseTrace(text, "t.json");
    EXPECT_TRUE(trace.ok() && trace->cut.empty() && trace->events.size() == 1) << args;
    return trace.ok() && trace->events.size() == 1 && trace->events[0].args == args;
  };
  for (const char* args : {"{}", R"({"a":[0,-1.5e+3,10,true,null],"b":{"c":false}})"}) {
    EXPECT_TRUE(is_kept(args)) << args;
  }
  for (const char* args : {"1", R"("a")", "[1]", R"({"a":NaN})", R"({"a":01})", "{\"a\":\"\xFF\"}"}) {
    EXPECT_FALSE(is_kept(args)) << args;
  }
}

TEST(TraceReader, ATimeThatIsNoneIsTheBeginning) {
  const Trace trace =
      ParseTrace(R"([{"ph":"i","ts":-1.5,"dur":7777777777777777},{"ph":"i","ts":7777777777777777}])",
                 "t.json")
          .value();
  ASSERT_EQ(trace.events.size(), 2);
  EXPECT_EQ(trace.events[0].start, -1500);
  EXPECT_EQ(trace.events[0].duration, 0);
  EXPECT_EQ(trace.events[1].start, 0);
}

TEST(TraceFile, OtherEndingsAreRefused) {
  EXPECT_EQ(TraceFile::Create("trace.txt", "{}").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(TraceEncoderFor("a.perfetto-trace.gz").ok());
  EXPECT_TRUE(TraceEncoderFor("a.pftrace").ok());
}

}  // namespace
}  // namespace ott
