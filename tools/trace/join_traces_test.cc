#include "tools/trace/join_traces.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/kineto/traces_for_test.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "tools/trace/traces_for_test.h"

namespace ott::trace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class JoinTracesTest : public RunWithTraces {
 protected:
  // "PROCESS NAME START+DURATION" of the joined trace.
  std::vector<std::string> Join(const TraceSelection& selection = {}, int64_t max_bytes = 0) {
    RunTraces traces = RunTraces::Find(run_dir_, selection).value();
    const std::string path = run_dir_ + "/joined.json";
    joined_ = JoinTraces(traces, path, max_bytes).value();
    info_ = traces.info();
    const Trace trace = ReadTrace(path).value();
    EXPECT_TRUE(trace.cut.empty());
    std::vector<std::string> result;
    for (const TraceEvent& event : trace.events) {
      result.push_back(std::to_string(event.process) + " " + std::string(event.name) + " " +
                       std::to_string(event.start) + "+" + std::to_string(event.duration));
    }
    return result;
  }

  // Writes traces of torch.profiler, and returns their paths.
  std::vector<std::string> WriteTorch(const std::vector<std::string>& traces) const {
    std::vector<std::string> paths;
    for (const std::string& trace : traces) {
      paths.push_back(run_dir_ + "/" + std::to_string(paths.size()) + ".json");
      EXPECT_TRUE(WriteFileAtomically(paths.back(), trace).ok());
    }
    return paths;
  }

  JoinedTrace joined_;
  JoinedTraceInfo info_;
};

TEST_F(JoinTracesTest, RanksAreOnRankZerosClock) {
  Write(InfoForTest(0, 1000, 0, 0), {SliceForTest("a", 10, 5)});
  Write(InfoForTest(1, 500, 700, 20), {SliceForTest("a", 10, 5)});
  EXPECT_THAT(Join(), ElementsAre("0 a 10+5", "1 a 210+5"));
  EXPECT_THAT(info_.notes(), IsEmpty());
  const std::string json = *ReadFile(run_dir_ + "/joined.json");
  EXPECT_THAT(json, HasSubstr("\"name\":\"rank 1 (node1)\""));
  EXPECT_THAT(json, HasSubstr("clock +700 ns to rank 0's, +- 20 ns"));
  EXPECT_THAT(json, HasSubstr(R"("error_bound_nanoseconds":"20")"));
}

TEST_F(JoinTracesTest, TracesOfTorchProfilerAreAlignedByTheirCollectives) {
  // Rank 1's clock is 2 s ahead, on which it comes 300 us later to each collective.
  const std::vector<std::string> paths =
      WriteTorch({kineto::RankTraceForTest(0, 0, 300), kineto::RankTraceForTest(1, 300, 300, 2'000'000)});
  // A capture beside a rank's trace has its clock.
  const std::string beside = kernels::CaptureSql()
                                 .Sql(
                                     "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
                                     "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (2000000000);")
                                 .Range(7, 7, 1'700'000, 1'900'000, "beside")
                                 .Write("beside.sqlite");
  RunTraces traces = RunTraces::Find(paths, {}, {{"1=" + beside}, {}}).value();
  const std::string joined = run_dir_ + "/joined.json";
  ASSERT_TRUE(JoinTraces(traces, joined, 0).ok());
  const Trace trace = *ReadTrace(joined);
  std::vector<int64_t> starts, ends;
  for (const TraceEvent& event : trace.events) {
    EXPECT_TRUE(event.name != "beside" || event.start == 700'000) << event.start;
    if (event.name.substr(0, 4) != "nccl") continue;
    starts.push_back(event.start);
    ends.push_back(event.start + event.duration);
  }
  ASSERT_EQ(starts.size(), 10U);
  EXPECT_EQ(starts[5] - starts[0], 300'000);
  EXPECT_EQ(ends[5], ends[0]);
  EXPECT_EQ(traces.RankTraces().size(), 3U);
  EXPECT_FALSE(RunTraces::Find({paths[0], run_dir_}, {}, {}).ok());
}

TEST_F(JoinTracesTest, ATraceThatTellsNoRankTakesThatOfNoOther) {
  std::string untold = kineto::RankTraceForTest(1, 300, 300);
  untold.replace(untold.find("distributedInfo"), 15, "noInfo");
  const std::vector<std::string> paths = WriteTorch({untold, kineto::RankTraceForTest(0, 0, 300)});
  RunTraces traces = RunTraces::Find(paths, {}, {}).value();
  const std::vector<waiting::RankProfile> ranks = traces.RankTraces();
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[0].profile->path, paths[1]);
  EXPECT_EQ(ranks[1].rank, 1);
  TraceSelection selection;
  selection.ranks = {1, 7};
  EXPECT_THAT(RunTraces::Find(paths, selection, {})->info().notes(),
              Contains("rank 7: has no trace among the files"));
}

// Between two windows, rank 1's clock goes 12 ms ahead.
TEST_F(JoinTracesTest, EachWindowOfTorchProfilerIsAlignedByItsOwnCollectives) {
  std::vector<std::string> texts;
  for (const int rank : {0, 1}) {
    texts.push_back(kineto::RankTraceForTest(rank, 0, 300, rank * 2'000'000));
    texts.push_back(
        absl::StrReplaceAll(kineto::RankTraceForTest(rank, 0, 300, 1'000'000'000 + rank * 2'012'000),
                            {{"\"Seq\":", "\"Seq\":1"}, {"ProfilerStep#", "ProfilerStep#1"}}));
  }
  RunTraces traces = RunTraces::Find(WriteTorch(texts), {}, {}).value();
  EXPECT_EQ(traces.two_runs(), "");
  std::map<int64_t, std::vector<int64_t>> ends;
  traces.Visit([&](const Trace& trace) {
    for (const TraceEvent& event : trace.events) {
      if (event.name.substr(0, 4) == "nccl") ends[event.process].push_back(event.start + event.duration);
    }
  });
  EXPECT_EQ(ends[0].size(), 10U);
  EXPECT_EQ(ends[1], ends[0]);
  EXPECT_THAT(traces.info().notes(), IsEmpty());
}

TEST_F(JoinTracesTest, TracesOfTwoRunsAreNotOneJob) {
  const std::string first = kineto::RankTraceForTest(0, 0, 300), second = kineto::RankTraceForTest(1, 0, 300);
  const std::vector<std::string> paths = WriteTorch({first, second, first, second});
  EXPECT_EQ(RunTraces::Find({paths[2], paths[3]}, {}, {})->two_runs(), "");
  const RunTraces traces = RunTraces::Find(paths, {}, {}).value();
  EXPECT_EQ(traces.two_runs(), paths[0] + " and " + paths[2] +
                                   " are both rank 0's, and have collectives in common: keep one run's");
  EXPECT_THAT(traces.info().notes(), Contains(traces.two_runs()));
}

TEST_F(JoinTracesTest, OfAnyWindowsEventsAreWhereTheirClocksSayAndWithinWhatIsSelected) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t end) { return static_cast<int64_t>(random() % end); };
    TraceSelection selection;
    if (below(3) == 0) selection.ranks.insert(static_cast<int>(below(2)));
    // A selection begins and ends at 512ths of a second, which are whole nanoseconds. All times are multiples
    // of a 25th of that, so that events lie at the edges, too.
    constexpr int64_t kStep = 1'000'000'000 / 512, kUnit = kStep / 25;
    const int64_t begin = below(3) == 0 ? below(3) : 0, end = below(3) == 0 ? begin + 1 + below(3) : 1000;
    selection.begin = static_cast<double>(begin) / 512;
    if (end < 1000) selection.end = static_cast<double>(end) / 512;
    std::vector<std::pair<TraceInfo, std::vector<TraceEvent>>> windows;
    std::vector<std::string> paths, notes;
    for (const int rank : {0, 1}) {
      std::filesystem::remove_all(RankDirectory(run_dir_, rank));
      for (int64_t window = 1, last = 1 + below(2); window <= last; ++window) {
        TraceInfo info = InfoForTest(rank, kUnit * below(9), kUnit * (below(50) - 25), 5);
        info.set_begin_unix_nanoseconds(kUnit * (1000 + below(50)));
        if (below(2) == 0)
          info.mutable_clock()->set_end_nanoseconds(info.clock().end_nanoseconds() - 500'000);
        if (below(3) == 0) info.clear_clock();
        std::vector<TraceEvent> events;
        for (const char* const name : {"a", "b", "c", "d"})
          events.push_back(SliceForTest(name, 2 * kUnit * below(6), 2 * kUnit * below(6)));
        Write(info, events, window);
        if (!selection.ranks.empty() && selection.ranks.count(rank) == 0) continue;
        windows.emplace_back(info, events);
        paths.push_back(TracePath(rank, window));
      }
    }
    // A window without a compared clock is placed by the time of day.
    int64_t from_unix = 0;
    for (size_t i = windows.size(); i-- > 0;) {
      const TraceInfo& info = windows[i].first;
      if (info.has_clock()) from_unix = info.clock().begin_nanoseconds() - info.begin_unix_nanoseconds();
      if (!info.has_clock() && windows.size() > 1)
        notes.insert(notes.begin(),
                     paths[i] + ": its clock was not compared with rank 0's; placed by the time of day");
    }
    const auto common = [&](const TraceInfo& info, int64_t time) {
      if (!info.has_clock()) return info.begin_unix_nanoseconds() + from_unix + time;
      const int64_t length = info.clock().end_nanoseconds() - info.clock().begin_nanoseconds();
      return info.clock().begin_nanoseconds() + time * length / 1'000'000;
    };
    int64_t first = INT64_MAX;
    for (const auto& [info, events] : windows) first = std::min(first, common(info, 0));
    std::vector<std::string> expected;
    for (const auto& [info, events] : windows) {
      std::vector<std::tuple<int64_t, int64_t, std::string>> sorted;
      for (const TraceEvent& event : events) {
        const int64_t from = common(info, event.start) - first,
                      to = common(info, event.start + event.duration) - first;
        // A moment is within where its nanosecond is.
        if (std::max(from, begin * kStep) < std::min(std::max(to, from + 1), end * kStep))
          sorted.emplace_back(from, from - to, event.name);
      }
      std::sort(sorted.begin(), sorted.end());
      for (const auto& [from, negative, name] : sorted) {
        expected.push_back(std::to_string(info.rank()) + " " + name + " " + std::to_string(from) + "+" +
                           std::to_string(-negative));
      }
    }
    EXPECT_EQ(Join(selection), expected);
    EXPECT_THAT(info_.notes(), ElementsAreArray(notes));
  }
}

TEST_F(JoinTracesTest, ShortestSlicesAreLeftOutToStayBelowASize) {
  std::vector<TraceEvent> events;
  TraceEvent mark = SliceForTest("mark", 5, 0);
  mark.type = TraceEvent::Type::kMark;
  events.push_back(mark);
  mark.type = TraceEvent::Type::kCounter;
  mark.name = "counter";
  events.push_back(mark);
  for (int i = 0; i < 1000; ++i) events.push_back(SliceForTest("slice", i * 100, 1 + i % 64));
  Write(InfoForTest(0, 0, 0, 0), events);
  Write(InfoForTest(1, 0, 0, 0), events);
  const size_t all = Join().size();
  EXPECT_EQ(all, 2004);
  EXPECT_EQ(joined_.num_events, all);
  const auto whole = static_cast<int64_t>(std::filesystem::file_size(run_dir_ + "/joined.json"));
  EXPECT_EQ(Join({}, 2 * whole).size(), all);
  EXPECT_EQ(joined_.num_left_out, 0);
  const std::vector<std::string> left = Join({}, whole / 2);
  EXPECT_LE(static_cast<int64_t>(std::filesystem::file_size(run_dir_ + "/joined.json")), whole / 2);
  EXPECT_GT(left.size(), all / 3);
  EXPECT_EQ(static_cast<int64_t>(all - left.size()), joined_.num_left_out);
  EXPECT_EQ(left.size(), joined_.num_events);
  EXPECT_THAT(left, AllOf(Contains("1 mark 5+0"), Contains("1 counter 5+0")));
  EXPECT_THAT(left, Contains(HasSubstr("+64")));
  EXPECT_THAT(left, Not(Contains(HasSubstr("+1"))));
}

TEST_F(JoinTracesTest, WhereNotEvenMarksFitAllIsLeftOut) {
  const std::string long_name(10'000, 'm');
  TraceEvent mark = SliceForTest(long_name, 5, 0);
  mark.type = TraceEvent::Type::kMark;
  Write(InfoForTest(0, 0, 0, 0), {mark, SliceForTest("slice", 10, 64)});
  EXPECT_EQ(Join({}, 9'000).size(), 0);
  EXPECT_EQ(joined_.num_left_out, 2);
  EXPECT_EQ(joined_.shortest, 65);
}

TEST_F(JoinTracesTest, PerfettoStaysBelowTheSizeTooOrIsRefusedIfNotEvenNamesFit) {
  std::vector<TraceEvent> events = {SliceForTest("long", 0, 1'000'000)};
  for (int i = 0; i < 1000; ++i) events.push_back(SliceForTest("slice", i * 100, 1 + i % 64));
  TraceInfo info = InfoForTest(0, 0, 0, 0);
  info.set_host(std::string(5000, 'n'));
  Write(info, events);
  absl::StatusOr<RunTraces> traces = RunTraces::Find(run_dir_, {});
  const std::string path = run_dir_ + "/joined.perfetto-trace";
  EXPECT_EQ(JoinTraces(*traces, path, 5'000).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(JoinTraces(*traces, path, 20'000).ok());
  EXPECT_LE(std::filesystem::file_size(path), 20'000);
  EXPECT_GT(std::filesystem::file_size(path), 10'000);
}

TEST_F(JoinTracesTest, OfAJobThatWasStartedAgainTheLatestStartIsWhole) {
  for (const int rank : {0, 1}) Write(InfoForTest(rank, 0, 0, 0), {SliceForTest("a", 10, 5)});
  const std::string latest = run_dir_ + "/attempt_2";
  ASSERT_TRUE(MakeDirectories(latest).ok());
  for (const std::string name : {"/run.json", "/rank_00000", "/rank_00001"})
    std::filesystem::copy(run_dir_ + name, latest + name, std::filesystem::copy_options::recursive);
  EXPECT_THAT(Join(), ElementsAre("0 a 10+5", "1 a 10+5"));
  EXPECT_THAT(info_.notes(), IsEmpty());
  const RunTraces first = RunTraces::Find(run_dir_ + "/attempt_1", {}).value();
  EXPECT_EQ(first.info().traces_size(), 2);
}

TEST_F(JoinTracesTest, OfATruncatedFileWholeEventsAreKeptAndTheCutIsShown) {
  Write(InfoForTest(0, 0, 0, 0), {SliceForTest("a", 10, 5)});
  Write(InfoForTest(1, 0, 0, 0),
        {SliceForTest("whole", 5, 50), SliceForTest("within", 10, 5), SliceForTest("cut", 20, 5)});
  std::filesystem::resize_file(TracePath(1), std::filesystem::file_size(TracePath(1)) - 10);
  // A size that is limited takes another look at it, which is noted once.
  EXPECT_THAT(Join({}, 1 << 20), ElementsAre("0 a 10+5", "1 whole 5+50", "1 within 10+5",
                                             AllOf(HasSubstr("truncated at byte"), EndsWith(" 55+0"))));
  EXPECT_THAT(info_.notes(), ElementsAre(HasSubstr(TracePath(1))));
}

TEST_F(JoinTracesTest, WhatIsMissingOfARankIsNamed) {
  const std::string path = TracePath(1);
  struct Case {
    std::function<void()> damage;
    bool is_lost;
    std::string note;
  };
  for (const auto& [damage, is_lost, note] :
       std::vector<Case>{{[&] { std::filesystem::remove(path); }, true, "rank 1: no trace in "},
                         {[&] { std::filesystem::resize_file(path, 0); }, true, path},
                         {[&] { std::filesystem::rename(TracePath(0, 2), path); }, true,
                          path + ": says it is rank 0's; was it copied here?"},
                         {[&] {
                            TraceInfo info = InfoForTest(1, 0, 0, 0);
                            info.set_num_lost_events(12);
                            Write(info, {SliceForTest("a", 10, 5)});
                          },
                          false, path + ": 12 events did not fit into their threads' buffers"}}) {
    for (const int rank : {0, 1}) Write(InfoForTest(rank, 0, 0, 0), {SliceForTest("a", 10, 5)});
    Write(InfoForTest(0, 0, 0, 0), {SliceForTest("b", 10, 5)}, 2);
    damage();
    std::filesystem::remove(TracePath(0, 2));
    std::vector<std::string> left = {"0 a 10+5"};
    if (!is_lost) left.push_back("1 a 10+5");
    EXPECT_EQ(Join(), left);
    EXPECT_THAT(info_.notes(), ElementsAre(StartsWith(note)));
  }
  TraceSelection selection;
  selection.ranks = {0, 7};
  EXPECT_THAT(Join(selection), ElementsAre("0 a 10+5"));
  EXPECT_THAT(info_.notes(), ElementsAre("rank 7: the run has no such rank"));
}

TEST_F(JoinTracesTest, TracesOfTorchProfilerAreTakenOfARunThatHasNoneOfItsOwn) {
  const auto path = [&](int rank) {
    return RankDirectory(run_dir_, rank) + "/torch.rank_0000" + std::to_string(rank) + ".json";
  };
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(MakeDirectories(RankDirectory(run_dir_, rank)).ok());
    ASSERT_TRUE(WriteFileAtomically(path(rank), kineto::RankTraceForTest(rank, 0, 300)).ok());
  }
  EXPECT_EQ(Join().size(), 70);
  EXPECT_THAT(info_.notes(), IsEmpty());
  Write(InfoForTest(0, 0, 0, 0), {SliceForTest("a", 10, 5)});
  EXPECT_THAT(Join(), ElementsAre("0 a 10+5"));
  EXPECT_THAT(info_.notes(), ElementsAre("rank 1: no trace in " + RankDirectory(run_dir_, 1)));
  std::filesystem::remove(TracePath(0));
  ASSERT_TRUE(WriteFileAtomically(path(1), "{").ok());
  EXPECT_EQ(Join().size(), 35);
  EXPECT_THAT(info_.notes(), ElementsAre(HasSubstr(path(1))));
}

TEST_F(JoinTracesTest, OtherFoldersAndRunsWithoutTracesAreErrors) {
  EXPECT_EQ(RunTraces::Find(run_dir_, {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RunTraces::Find(::testing::TempDir() + "/none", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JoinTracesTest, ASingleTraceIsTakenToo) {
  Write(InfoForTest(1, 500, 0, 20), {SliceForTest("b", 10, 5), SliceForTest("a", 10, 9)});
  RunTraces traces = RunTraces::Find(TracePath(1), {}).value();
  std::vector<std::string> names;
  traces.Visit([&names](const Trace& trace) {
    for (const TraceEvent& event : trace.events) names.emplace_back(event.name);
  });
  EXPECT_THAT(names, ElementsAre("a", "b"));
  TraceSelection selection;
  selection.ranks = {0};
  EXPECT_THAT(std::string(RunTraces::Find(TracePath(1), selection).status().message()),
              HasSubstr("rank 0: has no trace among the files"));
}

}  // namespace
}  // namespace ott::trace
