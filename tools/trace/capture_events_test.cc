#include "tools/trace/capture_events.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/kineto/traces_for_test.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "tools/trace/read_run_traces.h"
#include "tools/trace/trace_report.h"
#include "tools/trace/traces_for_test.h"

namespace ott::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

// When the captures begin, and how long before the windows of the runs.
constexpr int64_t kCaptureBegin = 1'700'000'000'000'000'000;
constexpr int64_t kAhead = 10'000;

TraceInfo WindowForTest(int rank) {
  TraceInfo info = InfoForTest(rank, 0, 0, 0);
  info.set_begin_unix_nanoseconds(kCaptureBegin + kAhead);
  info.set_process_id(100 + rank);
  return info;
}

kernels::CaptureSql SqlWithoutBegin() {
  return kernels::CaptureSql().Sql(R"sql(
    CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id, label); INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'Host-to-Device');
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
        start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
        start, end, deviceId, streamId, correlationId, globalPid, bytes);)sql");
}

// monotonic: what the machine's other clock shows then.
kernels::CaptureSql SqlForTest(int64_t begin = kCaptureBegin, const std::string& monotonic = "NULL") {
  return SqlWithoutBegin().Sql(
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, systemClockNs INTEGER);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (" +
      std::to_string(begin) + "," + monotonic + ");");
}

// Has a gemm from 500 to 600 of the window. It was launched at 200, in a range that the run's own trace has,
// too.
kernels::CaptureSql SqlWithKernel(int64_t pid) {
  return SqlForTest()
      .Range(pid, pid, kAhead + 100, kAhead + 600, "forward")
      .Kernel(pid, pid, kAhead + 200, kAhead + 500, 100, "gemm", 1);
}

class CaptureEventsTest : public RunWithTraces {
 protected:
  void SetUp() override {
    Write(WindowForTest(0), {SliceForTest("forward", 0, 450), SliceForTest("data", 450, 500)});
    Write(WindowForTest(1), {SliceForTest("forward", 0, 450)});
  }

  // "PROCESS TRACK NAME START+DURATION ARGS FLOW" of what comes from captures; the run's own without files.
  std::vector<std::string> Visit(const std::string& path, const CaptureOptions& options = {}) {
    RunTraces traces = RunTraces::Find(path, {}, options).value();
    std::vector<std::string> result;
    traces.Visit([&](const Trace& trace) {
      report_.Add(trace);
      for (const TraceEvent& event : trace.events) {
        if (event.category == "stopwatch") continue;
        std::string track;
        for (const TraceTrack& known : trace.tracks) {
          if (known.track == event.track) track = known.name;
        }
        std::string text = absl::StrCat(event.process, " ", track, ": ", std::string(event.name), " ",
                                        event.start, "+", event.duration, " ", std::string(event.args));
        if (event.category != "device" && event.category != "launch") text += event.category;
        if (event.type == TraceEvent::Type::kOverlappingSlice) text += " overlaps";
        if (event.flow != TraceEvent::Flow::kNone) {
          text += event.flow == TraceEvent::Flow::kStart ? " ->" : " <-";
          text += std::to_string(event.flow_id & 0xffffffff);
        }
        result.push_back(text);
      }
    });
    notes_.assign(traces.info().notes().begin(), traces.info().notes().end());
    return result;
  }
  std::vector<std::string> Join(const std::string& capture) { return Visit(run_dir_, {{capture}, {}}); }
  absl::Status Error(const CaptureOptions& options) const {
    return RunTraces::Find(run_dir_, {}, options).status();
  }

  TraceReport report_;
  std::vector<std::string> notes_;
};

TEST_F(CaptureEventsTest, KernelsAndTransfersAreOnTheTimelineOfTheirRankWithArrowsFromTheirLaunches) {
  const std::string pid = std::to_string(kernels::GlobalTid(100, 0));
  const std::string path =
      SqlWithKernel(100)
          .Sql("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10700, 10750, 3, 8, 2, " + pid + ", 64, 1);" +
               "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (10560, 10580, 0, 7, NULL, " + pid + ", 32);" +
               "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10300, 10330, " +
               std::to_string(kernels::GlobalTid(100, 105)) + ", 2, 0);")
          .Write("by_pid.sqlite");
  EXPECT_THAT(Join(path),
              ElementsAre("0 launches of thread 100: launch 200+1  ->0",
                          "0 launches of thread 105: launch 300+30  ->1",
                          "0 GPU 0, stream 7: gemm 500+100 {\"grid\":[585,1,1],\"block\":[256,1,1]} <-0",
                          "0 GPU 0, stream 7: memset 560+20 {\"bytes\":32} overlaps",
                          "0 GPU 3, stream 8: memcpy Host-to-Device 700+50 {\"bytes\":64} <-1"));
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_THAT(report_.Gaps(), HasSubstr("data         10.5 %     1  100 ns"));
}

TEST_F(CaptureEventsTest, OfAnyKernelsThoseThatBeginInAWindowAreThereWithTheirLaunches) {
  const auto is_in_window = [](int64_t time) { return time >= kAhead && time <= kAhead + 1'000'000; };
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t end) { return static_cast<int64_t>(random() % end); };
    kernels::CaptureSql sql = SqlForTest();
    std::vector<std::string> expected;
    std::map<std::pair<int64_t, int64_t>, int64_t> busy_until;  // by rank and device
    struct Launch {
      int64_t rank, thread, time;  // below 0: not in the file
      bool has_arrow;
    };
    std::map<int64_t, Launch> launches;  // by correlation
    int64_t start = 0;
    for (int64_t id = 1; id <= 30; ++id) {
      start += below(2) == 0 ? below(9'000) : below(120'000);
      if (id == 5) start = std::max(start, kAhead + 1'000'000 * below(2));
      // Graphs launch many kernels at once, and clocks of devices may be behind.
      const int64_t correlation = below(3) == 0 ? 1 + below(id) : id, of_rank = below(2);
      const int64_t time = below(3) == 0 ? -1 : start + 100'000 - below(300'000);
      const auto [known, is_new] =
          launches.try_emplace(correlation, Launch{of_rank, 100 + of_rank + 10 * below(2), time, false});
      Launch& launch = known->second;
      const int64_t rank = launch.rank, device = below(2), duration = 1 + below(150'000);
      const std::string name = absl::StrCat("kernel ", id);
      sql.Kernel(100 + rank, launch.thread, is_new ? launch.time : -1, start, duration, name, correlation,
                 static_cast<int>(device));
      if (!is_in_window(start)) continue;
      int64_t& until = busy_until[{rank, device}];
      const bool overlaps = start < until;
      const bool has_arrow = !overlaps && is_in_window(launch.time) && !launch.has_arrow;
      launch.has_arrow |= has_arrow;
      until = std::max(until, start + duration);
      const auto place = [&](int64_t time) { return absl::StrCat(" ", time - kAhead, "+"); };
      expected.push_back(absl::StrCat(rank, " GPU ", device, ", stream 7: ", name, place(start), duration,
                                      " {\"grid\":[585,1,1],\"block\":[256,1,1]}",
                                      overlaps    ? " overlaps"
                                      : has_arrow ? " <-"
                                                  : ""));
      if (has_arrow)
        expected.push_back(absl::StrCat(rank, " launches of thread ", launch.thread, ": launch",
                                        place(launch.time), "1  ->"));
    }
    std::vector<std::string> found = Join(sql.Write("random.sqlite")), starts, ends;
    for (std::string& event : found) {
      if (event.find(" ->") == std::string::npos && event.find(" <-") == std::string::npos) continue;
      const size_t number = event.find_last_not_of("0123456789") + 1;
      (event.find(" ->") != std::string::npos ? starts : ends).push_back(event.substr(number));
      event.resize(number);
    }
    EXPECT_THAT(found, UnorderedElementsAreArray(expected));
    EXPECT_THAT(starts, UnorderedElementsAreArray(ends));
    EXPECT_EQ(std::set<std::string>(starts.begin(), starts.end()).size(), starts.size());
  }
}

TEST_F(CaptureEventsTest, GivenRankGoesBeforeTheNamesAndThatBeforeTheProcessId) {
  const std::string named = SqlWithKernel(100).Write("named.rank_00001.sqlite");
  const std::string nobodys = SqlWithKernel(999).Write("nobody.sqlite");
  for (const auto& [capture, rank] : {std::pair(named, "1"), {"0=" + named, "0"}, {"0=" + nobodys, "0"}}) {
    EXPECT_THAT(Join(capture), ElementsAre(HasSubstr(absl::StrCat(rank, " launches")),
                                           HasSubstr(absl::StrCat(rank, " GPU 0"))));
  }
  EXPECT_THAT(std::string(Error({{nobodys}, {}}).message()), HasSubstr("give it as RANK="));
  // In containers, two ranks' processes may have one number.
  TraceInfo other = WindowForTest(1);
  other.set_process_id(100);
  Write(other, {});
  EXPECT_THAT(std::string(Error({{SqlWithKernel(100).Write("of_two.sqlite")}, {}}).message()),
              HasSubstr("its process ids (100) belong to one rank"));
}

TEST_F(CaptureEventsTest, CapturesOfRanksThatAreNotSelectedAreNotMissed) {
  TraceSelection selection;
  selection.ranks = {0};
  const auto traces =
      RunTraces::Find(
          run_dir_, selection,
          {{SqlWithKernel(100).Write("s.rank_00000.sqlite"), SqlWithKernel(101).Write("s.rank_00001.sqlite")},
           {}})
          .value();
  EXPECT_THAT(traces.info().notes(), IsEmpty());
}

TEST_F(CaptureEventsTest, CapturesThatTellNothingOfTheRunSaySo) {
  const std::string with_kernel = SqlWithKernel(100).Write("kernel.sqlite");
  const std::string of_host = SqlForTest().Range(100, 100, 1, 2, "a").Write("host.sqlite");
  for (const auto& [options, note] : std::vector<std::pair<CaptureOptions, std::string>>{
           {{{"7=" + with_kernel}, {}}, "rank 7, which has no trace"},
           {{{of_host}, {}}, "has no kernels, memory copies or memsets"},
           {{{with_kernel}, kCaptureBegin + 3'600'000'000'000}, "the capture reaches from 3600 s"}}) {
    EXPECT_THAT(Visit(run_dir_, options), IsEmpty());
    EXPECT_THAT(notes_, ElementsAre(HasSubstr(note)));
  }
  const std::string pid = std::to_string(kernels::GlobalTid(100, 0));
  Join(SqlForTest()
           .Sql("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (10560, 10580, 0, 7, NULL, " + pid + ", 32);")
           .Write("memset.sqlite"));
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_THAT(std::string(RunTraces::Find(SqlForTest().Write("empty.sqlite"), {}).status().message()),
              HasSubstr("has neither ranges nor device activity"));
}

TEST_F(CaptureEventsTest, WhereTheFileDoesNotSayWhenItBeganTheOffsetIsNeeded) {
  const std::string path =
      SqlWithoutBegin().Kernel(100, 100, 200, 500, 100, "gemm", 1).Write("no_begin.sqlite");
  EXPECT_THAT(std::string(Error({{path}, {}}).message()), HasSubstr("--capture-offset"));
  EXPECT_THAT(Visit(run_dir_, {{path}, kCaptureBegin + kAhead}),
              ElementsAre(HasSubstr("launch 200+1"), HasSubstr("gemm 500+100")));
}

TEST_F(CaptureEventsTest, CaptureAloneIsATraceWithItsRanges) {
  const std::string path = SqlForTest()
                               .Range(100, 100, 5, 50, "linear, seq = 3, sizes = [[2, 2]]")
                               .Range(100, 100, 6, 7, kernels::kLinear)
                               .Range(100, 100, 8, 9, "{'traceMarker': ['a.py:1']}")
                               .Range(100, 100, 51, 60, "ProfilerStep#3")
                               .Range(150, 150, 52, 53, "forward")
                               .Kernel(100, 100, 10, 20, 10, "gemm", 1)
                               .Kernel(200, 201, 15, 30, 10, "relu", 2, 1)
                               .Write("alone.sqlite");
  // A process without kernels comes after those with them.
  EXPECT_THAT(
      Visit(path),
      UnorderedElementsAre(
          "0 thread 100: linear 0+45 nvtx", "0 thread 100: linear 1+1 nvtx", "0 thread 100: a.py:1 3+1 nvtx",
          "0 thread 100: ProfilerStep#3 46+9 step", "0 launches of thread 100: launch 5+1  ->0",
          HasSubstr("0 GPU 0, stream 7: gemm 15+10"), "1 launches of thread 201: launch 10+1  ->1",
          HasSubstr("1 GPU 1, stream 7: relu 25+10"), "2 thread 150: forward 47+1 nvtx"));
  EXPECT_THAT(notes_, IsEmpty());
  const std::string of_torch = run_dir_ + "/torch.json";
  ASSERT_TRUE(WriteFileAtomically(of_torch, kineto::RankTraceForTest(0, 0, 300)).ok());
  EXPECT_THAT(Visit(of_torch), testing::IsSupersetOf({"0 thread 1: ProfilerStep#0 0+9000000 step",
                                                      "0 thread 1: mm 10000+50000 op",
                                                      "0 thread 1: record_param_comms 80000+20000 nvtx"}));
}

TEST_F(CaptureEventsTest, CapturesOfOneMachineHaveOneClock) {
  const auto capture = [](const std::string& name, int pid, int64_t begin, const std::string& monotonic) {
    return SqlForTest(begin, monotonic).Range(pid, pid, 1000, 1050, "step").Write(name);
  };
  const std::string first = capture("one.rank_00000.sqlite", 100, kCaptureBegin, "7000");
  // The time of day was read a little late.
  const std::string second = capture("one.rank_00001.sqlite", 101, kCaptureBegin + 25, "7020");
  EXPECT_THAT(Visit(first, {{second}, {}}),
              ElementsAre("0 thread 100: step 0+50 nvtx", "1 thread 101: step 20+50 nvtx"));
  EXPECT_THAT(notes_, IsEmpty());
  for (const std::string monotonic : {"12007020", "NULL"}) {
    const std::string other = capture("other.rank_00001.sqlite", 101, kCaptureBegin + 25, monotonic);
    EXPECT_THAT(Visit(first, {{other}, {}}),
                ElementsAre("0 thread 100: step 0+50 nvtx", "1 thread 101: step 25+50 nvtx"));
    EXPECT_THAT(notes_, ElementsAre(HasSubstr("one.rank_00000.sqlite: its clock was not compared"),
                                    HasSubstr("other.rank_00001.sqlite: its clock was not compared")));
  }
  // An offset that is given goes before all that the files say.
  EXPECT_THAT(Visit(first, {{second}, kCaptureBegin}),
              ElementsAre("0 thread 100: step 0+50 nvtx", "1 thread 101: step 0+50 nvtx"));
}

}  // namespace
}  // namespace ott::trace
