#include "ott/core/trace/profiler.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/events/recorded_window.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/trace/trace_reader.h"
#include "ott/core/trace/write_trace.h"

namespace ott {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int num_synchronized = 0;

absl::Status CountSynchronization() {
  ++num_synchronized;
  return absl::OkStatus();
}

absl::Status NoDevice() { return absl::FailedPreconditionError("no device in this test"); }

std::vector<std::string> NamesIn(const Trace& trace) {
  std::vector<std::string> names;
  for (const TraceEvent& event : trace.events) names.emplace_back(event.name);
  return names;
}

class ProfilerTest : public ::testing::Test {
 protected:
  ~ProfilerTest() override { EXPECT_TRUE(Profiler::Get().Stop().ok()); }

  // Keeps of each window its steps, and the names of its events.
  Profiler::Options Options(int64_t wait, int64_t warmup, int64_t active, int64_t repeat = 0) {
    Profiler::Options options;
    options.schedule.wait = wait;
    options.schedule.warmup = warmup;
    options.schedule.active = active;
    options.schedule.repeat = repeat;
    options.on_window = [this](const Profiler::Window& window) {
      windows_.push_back(std::to_string(window.number) + ": " + std::to_string(window.first_step) + "-" +
                         std::to_string(window.last_step) + (window.cut ? " cut" : ""));
      names_.clear();
      RecordedWindow(window.recorder).Visit([this](const TraceEvent& event) {
        names_.emplace_back(event.name);
      });
      return absl::OkStatus();
    };
    return options;
  }

  static void Enable(const Profiler::Options& options) {
    ASSERT_EQ(Profiler::Get().Enable(options), absl::OkStatus());
  }

  static void Step(int count = 1) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(Profiler::Get().Step().ok());
  }

  std::vector<std::string> windows_;
  std::vector<std::string> names_;
};

TEST_F(ProfilerTest, WindowsFollowTheSchedule) {
  Enable(Options(1, 1, 3, 2));
  Step(20);
  EXPECT_THAT(windows_, ElementsAre("1: 2-4", "2: 7-9"));
}

TEST_F(ProfilerTest, WindowsWithoutAPauseDoNotShareSteps) {
  Enable(Options(0, 0, 2));
  Step(4);
  EXPECT_THAT(windows_, ElementsAre("1: 0-1", "2: 2-3"));
  EXPECT_THAT(names_, ElementsAre("ProfilerStep#2", "ProfilerStep#3"));
}

TEST_F(ProfilerTest, HelpersThatAreOffAreRecordedInWindowsAlone) {
  Enable(Options(1, 1, 1, 1));
  for (int i = 0; i < 5; ++i) {
    OTT_STOPWATCH_SCOPE("scope");
    static Stopwatch::Measurement measurement("measurement");
    measurement.Start();
    measurement.End();
    OTT_NVTX_SCOPE("range");
    NvtxRangeWrapper::Get().Mark("mark");
    Stopwatch::Get().FinishIter();
    if (i == 2) {
      Profiler::Get().Mark("of the window");
      Profiler::Get().Counter("loss", 0.5);
    } else {
      Profiler::Get().Mark("outside");
    }
    Step();
  }
  EXPECT_THAT(windows_, ElementsAre("1: 2-2"));
  EXPECT_THAT(names_, ElementsAre("ProfilerStep#2", "scope", "measurement", "range", "mark", "of the window",
                                  "loss"));
  EXPECT_FALSE(Stopwatch::Get().enabled());
  EXPECT_FALSE(NvtxRangeWrapper::Get().enabled());
  EXPECT_THAT(Stopwatch::Get().Snapshot().measurements, IsEmpty());
  EXPECT_EQ(Profiler::Get().IfRecording(), nullptr);
}

TEST_F(ProfilerTest, OffStopwatchMindsNoUnbalancedCallsOfAWindow) {
  Enable(Options(1, 0, 1));
  Stopwatch& stopwatch = Stopwatch::Get();
  stopwatch.Start("begun before the window");
  Step();
  stopwatch.End("begun before the window");
  stopwatch.Start("ends after the window");
  stopwatch.StartOneTime("once");
  Step();
  stopwatch.End("ends after the window");
  stopwatch.EndOneTime("once");
  Step();
  stopwatch.Start("ends after the window");
  stopwatch.End("ends after the window");
  Step();
  EXPECT_THAT(windows_, ElementsAre("1: 1-1", "2: 3-3"));
  EXPECT_THAT(names_, ElementsAre("ProfilerStep#3", "ends after the window"));
}

TEST_F(ProfilerTest, HelpersCannotBeEnabledInAWindow) {
  Enable(Options(0, 0, 1));
  EXPECT_EQ(Stopwatch::Get().Enable({}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Stopwatch::Get().Enable({}).message()), HasSubstr("before the profiler"));
}

TEST_F(ProfilerTest, OtherThreadsAreRecorded) {
  Enable(Options(0, 0, 1, 1));
  std::thread([] { OTT_STOPWATCH_SCOPE("of another thread"); }).join();
  Step();
  EXPECT_THAT(names_, Contains("of another thread"));
}

TEST_F(ProfilerTest, WarmUpIsForgotten) {
  Enable(Options(0, 1, 1, 1));
  Profiler::Get().Mark("in warm-up");
  EXPECT_NE(Profiler::Get().IfRecording(), nullptr);
  Step();
  Profiler::Get().Mark("in the window");
  Step();
  EXPECT_THAT(names_, ElementsAre("ProfilerStep#1", "in the window"));
}

TEST_F(ProfilerTest, StopCutsAWindow) {
  Enable(Options(0, 0, 3));
  Step();
  ASSERT_TRUE(Profiler::Get().Stop().ok());
  EXPECT_THAT(windows_, ElementsAre("1: 0-1 cut"));
  Step(5);
  EXPECT_THAT(windows_, ElementsAre("1: 0-1 cut"));
  // A window without a whole step is left out.
  Enable(Options(0, 0, 2));
  Step(2);
  ASSERT_TRUE(Profiler::Get().Stop().ok());
  EXPECT_THAT(windows_, ElementsAre("1: 0-1 cut", "1: 0-1"));
}

TEST_F(ProfilerTest, EnablingTwiceOrWithoutAScheduleIsRefused) {
  EXPECT_EQ(Profiler::Get().Enable(Options(0, 0, 0)).code(), absl::StatusCode::kInvalidArgument);
  Enable(Options(0, 0, 1));
  const absl::Status twice = Profiler::Get().Enable({});
  EXPECT_EQ(twice.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(twice.message()), HasSubstr("profiler_test.cc"));
  ASSERT_TRUE(Profiler::Get().Stop().ok());
  Enable(Options(0, 0, 1));
}

TEST_F(ProfilerTest, ErrorsOfTheCallbackAreReturned) {
  Profiler::Options options = Options(0, 0, 1);
  options.on_window = [](const Profiler::Window&) { return absl::DataLossError("disk full"); };
  Enable(options);
  EXPECT_EQ(Profiler::Get().Step().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ProfilerTest, ConfigHasEveryField) {
  ProfileConfig config;
  config.set_active(3);
  config.set_synchronize_device(true);
  config.set_thread_buffer_mib(2);
  const Profiler::Options options = Profiler::FromConfig(config);
  EXPECT_EQ(options.schedule.active, 3);
  EXPECT_TRUE(options.synchronize_device);
  EXPECT_EQ(options.thread_buffer_bytes, size_t{2} << 20);
  EXPECT_EQ(Profiler::FromConfig({}).thread_buffer_bytes, EventRecorder::kDefaultThreadBufferBytes);
}

TEST_F(ProfilerTest, LastWindowMayBeExportedUntilTheNextBegins) {
  const std::string path = ::testing::TempDir() + "/later.json";
  const auto write = [&path](const Profiler::Window& window) { return WriteTrace(window, path); };
  Profiler::Options options = Options(1, 0, 1);
  options.on_window = nullptr;
  Enable(options);
  Step(3);
  // Step 3 is the next window's.
  EXPECT_EQ(Profiler::Get().VisitLastWindow(write).code(), absl::StatusCode::kFailedPrecondition);
  { OTT_STOPWATCH_SCOPE("later"); }
  Step();
  ASSERT_TRUE(Profiler::Get().Stop().ok());
  ASSERT_EQ(Profiler::Get().VisitLastWindow(write), absl::OkStatus());
  const Trace trace = ReadTrace(path).value();
  EXPECT_THAT(NamesIn(trace), ElementsAre("ProfilerStep#3", "later"));
  const absl::Status refused = absl::CancelledError("refused");
  EXPECT_EQ(Profiler::Get().VisitLastWindow([&](const Profiler::Window&) { return refused; }), refused);
}

TEST_F(ProfilerTest, ATraceTellsAllOfItsWindow) {
  const std::string path = ::testing::TempDir() + "/all.json";
  for (const bool cut : {false, true}) {
    TraceInfo expected;
    expected.set_rank(5);
    expected.set_world_size(8);
    expected.set_host("node7");
    expected.mutable_clock()->set_error_bound_nanoseconds(9);
    Profiler::Options options = Options(1, 0, 2);
    options.thread_buffer_bytes = 4096;
    options.on_window = [&](const Profiler::Window& window) {
      EXPECT_EQ(WriteTrace(window, path, expected), absl::OkStatus());
      const RecordedWindow recorded(window.recorder);
      expected.set_begin_nanoseconds(recorded.opened().steady_nanoseconds);
      expected.set_end_nanoseconds(recorded.closed().steady_nanoseconds);
      expected.set_begin_unix_nanoseconds(recorded.opened().unix_nanoseconds);
      expected.set_num_lost_events(recorded.num_lost_events());
      return absl::OkStatus();
    };
    Enable(options);
    Stopwatch& stopwatch = Stopwatch::Get();
    for (const char* name : {"a", "b", "c"}) stopwatch.Start(name);
    Step();
    for (const char* name : {"a", "b", "c"}) stopwatch.End(name);
    stopwatch.Start("unfinished");
    for (int i = 0; i < 1000; ++i) Profiler::Get().Mark("mark");
    Step(cut ? 1 : 2);
    ASSERT_TRUE(Profiler::Get().Stop().ok());
    EXPECT_GT(expected.num_lost_events(), 0);
    expected.set_process_id(getpid());
    expected.set_window(1);
    expected.set_first_step(1);
    expected.set_last_step(2);
    expected.set_cut(cut);
    expected.set_num_unfinished_ranges(1);  // the step that is cut is lost
    expected.set_num_ends_without_begin(3);
    EXPECT_EQ(ReadTrace(path)->info.DebugString(), expected.DebugString());
  }
}

TEST_F(ProfilerTest, WindowsAreWrittenWhereTensorBoardLooks) {
  const std::string dir = ::testing::TempDir() + "/tensorboard/run";
  Profiler::Options options = Options(0, 0, 1);
  options.on_window = TensorBoardTraceHandler(dir, "worker0", true);
  Enable(options);
  ASSERT_EQ(Profiler::Get().Step(), absl::OkStatus());
  ASSERT_EQ(Profiler::Get().Stop(), absl::OkStatus());
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(dir))
    names.push_back(file.path().filename().string());
  EXPECT_THAT(names, ElementsAre(::testing::MatchesRegex("worker0\\.[0-9]+\\.pt\\.trace\\.json\\.gz")));
  EXPECT_TRUE(ReadTrace(dir + "/" + names.at(0)).ok());
}

TEST_F(ProfilerTest, ProcessThatExitsInAWindowLeavesItsTrace) {
  const std::string path = ::testing::TempDir() + "/exit.json";
  EXPECT_EXIT(
      {
        Profiler::Options options = Options(0, 0, 10);
        options.on_window = [&path](const Profiler::Window& window) { return WriteTrace(window, path); };
        Enable(options);
        { OTT_STOPWATCH_SCOPE("whole"); }
        Stopwatch::Get().Start("hangs");
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
  const Trace trace = ReadTrace(path).value();
  EXPECT_TRUE(trace.info.cut());
  EXPECT_EQ(trace.info.num_unfinished_ranges(), 2);
  EXPECT_THAT(NamesIn(trace), ElementsAre("ProfilerStep#0", "whole", "hangs"));
}

TEST_F(ProfilerTest, ForkedProcessLeavesTheTraceToItsParent) {
  const std::string path = ::testing::TempDir() + "/forked.json";
  EXPECT_EXIT(
      {
        Profiler::Options options = Options(0, 0, 10);
        options.on_window = [&path](const Profiler::Window& window) { return WriteTrace(window, path); };
        Enable(options);
        const pid_t child = fork();
        if (child == 0) std::exit(0);
        waitpid(child, nullptr, 0);
        std::fputs(access(path.c_str(), F_OK) == 0 ? "written" : "absent", stderr);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "absent");
}

TEST(OwnProfiler, SynchronizesTheDeviceAroundStepsOfAWindow) {
  Profiler profiler(Profiler::Environment{Clock::Steady(), &CountSynchronization});
  Profiler::Options options;
  options.synchronize_device = true;
  options.schedule.wait = 2;
  options.schedule.active = 2;
  ASSERT_TRUE(profiler.Enable(options).ok());
  std::vector<int> counts;
  for (int step = 0; step < 4; ++step) {
    num_synchronized = 0;
    ASSERT_TRUE(profiler.Step().ok());
    counts.push_back(num_synchronized);
  }
  // Before the window, and after each of its steps.
  EXPECT_THAT(counts, ElementsAre(0, 1, 1, 1));
}

TEST(ProcessOf, SaysWhereTheRankRunsAndHowItsClockStands) {
  for (const auto& [offset, bound, label] : {std::tuple(700, 20, "clock +700 ns to rank 0's, +- 20 ns"),
                                             {-700, 20, "clock -700 ns to rank 0's, +- 20 ns"},
                                             {700, 0, ""}}) {
    TraceInfo info;
    info.set_rank(3);
    info.set_host("node7");
    info.set_begin_nanoseconds(1000);
    info.mutable_clock()->set_begin_nanoseconds(1000 + offset);
    info.mutable_clock()->set_error_bound_nanoseconds(bound);
    EXPECT_EQ(ProcessOf(info).name, "rank 3 (node7)");
    EXPECT_EQ(ProcessOf(info).labels, label);
  }
}

TEST(OwnProfiler, EnablingFailsWhereTheDeviceCannotBeSynchronized) {
  Profiler profiler(Profiler::Environment{Clock::Steady(), &NoDevice});
  Profiler::Options options;
  options.synchronize_device = true;
  EXPECT_EQ(profiler.Enable(options).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ott
