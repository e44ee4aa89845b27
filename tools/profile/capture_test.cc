// Programs that use NVTX, captured for real.

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/profile/capture_for_test.h"
#include "tools/profile/profile_program.h"

namespace ott::profile {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(CaptureTest, FileHoldsEveryRangeMarkAndName) {
  const CaptureSummary capture = Capture({"everything"});
  EXPECT_EQ(capture.num_ranges, 14);
  EXPECT_EQ(capture.num_marks, 2);
  EXPECT_EQ(capture.program, "nvtx_program_for_test");
  EXPECT_THAT(capture.problems, IsEmpty());
  EXPECT_THAT(
      Rows("SELECT text, value, end IS NULL, category, color, domainId, uint64Value, int32Value, doubleValue "
           "FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE eventType IN (34, 59) AND "
           "globalTid % 0x1000000 = globalTid / 0x1000000 % 0x1000000 ORDER BY start"),
      ElementsAre("outer|-|0|-|-|0|-|-|-", "inner|-|0|-|-|0|-|-|-",
                  "wide \u00e4\u20ac\U0001f600|-|0|-|-|0|-|-|-",
                  "bytes \ufffd\ufffd( that are not UTF-8|-|0|-|-|0|-|-|-", "|-|0|-|-|0|-|-|-",
                  "mark|-|1|-|-|0|-|-|-", "in domain|-|0|7|4278255360|1|-|-|-", "-|registered|0|-|-|1|-|-|-",
                  "-|registered|0|-|-|1|-|-|-", "uint64|-|0|-|-|0|1000000000000|-|-",
                  "int32|-|0|-|-|0|-|-5|-", "double|-|1|-|-|1|-|-|0.25", "never popped|-|1|-|-|0|-|-|-"));
  EXPECT_THAT(Rows("SELECT value FROM StringIds WHERE value = 'registered'"), SizeIs(1));
  // Domains, categories and threads have names.
  EXPECT_THAT(Rows("SELECT eventType, category, COALESCE(text, value), domainId FROM NVTX_EVENTS "
                   "LEFT JOIN StringIds ON id = textId WHERE eventType IN (33, 39, 75, 76) ORDER BY start"),
              ElementsAre("39|-|main thread|-", "75|-|library|1", "33|7|loading|1", "76|-|-|1"));
  EXPECT_THAT(Rows("SELECT value FROM ThreadNames JOIN StringIds ON id = nameId"),
              UnorderedElementsAre("main thread", "worker"));
  // A range ends on another thread.
  EXPECT_THAT(Rows("SELECT text, rangeId, end > start, endGlobalTid = globalTid FROM NVTX_EVENTS "
                   "WHERE eventType = 60 ORDER BY start"),
              ElementsAre("started here, ended there|1|1|0", "never ended|2|-|-"));
  // Ranges lie within each other and the session.
  EXPECT_THAT(Rows("SELECT outer.start < inner.start, inner.end < outer.end FROM NVTX_EVENTS AS outer, "
                   "NVTX_EVENTS AS inner WHERE outer.text = 'outer' AND inner.text = 'inner'"),
              ElementsAre("1|1"));
  EXPECT_THAT(Rows("SELECT MIN(start) > 0, MAX(end) <= duration, "
                   "abs(utcEpochNs / 1e9 - strftime('%s', 'now')) < 60 FROM NVTX_EVENTS, "
                   "ANALYSIS_DETAILS, TARGET_INFO_SESSION_START_TIME"),
              ElementsAre("1|1|1"));
}

TEST_F(CaptureTest, ThreadsAreKeptApart) {
  const CaptureSummary capture = Capture({"threads", "20000"});
  EXPECT_EQ(capture.num_ranges, 4 * 20000);
  EXPECT_EQ(capture.num_dropped, 0);
  EXPECT_THAT(Rows("SELECT SUM(text = 'inner'), SUM(text = 'outer'), COUNT(end) FROM NVTX_EVENTS "
                   "WHERE eventType = 59 GROUP BY globalTid"),
              ElementsAreArray(std::vector<std::string>(4, "10000|10000|20000")));
}

TEST_F(CaptureTest, StringsAreKnownWhereverTheyAreUsed) {
  Profile({"strings", "20000"});
  EXPECT_THAT(Rows("SELECT COUNT(*), COUNT(DISTINCT value), SUM(value = '<unnamed>') FROM NVTX_EVENTS "
                   "JOIN StringIds ON id = textId WHERE eventType = 59"),
              ElementsAre("80000|80000|0"));
}

TEST_F(CaptureTest, NoWayToEndAProgramLosesEvents) {
  options_.overwrite = true;
  for (const char* way : {"exit", "_exit", "quick_exit"}) {
    const ProfiledProgram program = Profile({way, "3"});
    EXPECT_EQ(WEXITSTATUS(program.wait_status), 3) << way;
    EXPECT_THAT(Ranges(), ElementsAre("range")) << way;
  }
  for (const int signal : {SIGKILL, SIGABRT, SIGTERM, SIGHUP}) {
    const ProfiledProgram program = Profile({"signal", std::to_string(signal)});
    EXPECT_TRUE(WIFSIGNALED(program.wait_status)) << signal;
    EXPECT_EQ(WTERMSIG(program.wait_status), signal);
    EXPECT_THAT(Ranges(), ElementsAre("open", "range")) << signal;
    EXPECT_THAT(Rows("SELECT text FROM NVTX_EVENTS WHERE end IS NULL"), ElementsAre("open"));
  }
}

TEST_F(CaptureTest, ChildOfForkHasAFileOfItsOwn) {
  const ProfiledProgram program = Profile({"fork"});
  ASSERT_THAT(program.captures, SizeIs(2));
  std::map<std::string, std::vector<std::string>> names;
  for (const CaptureSummary& capture : program.captures) {
    names[capture.path == options_.output ? "first" : "second"] = Names(capture.path, 59);
    if (capture.path != options_.output) {
      EXPECT_EQ(capture.path, directory_ + "/run.pid_" + std::to_string(capture.pid) + ".sqlite");
    }
  }
  EXPECT_THAT(names["first"], ElementsAre("parent before", "parent after"));
  EXPECT_THAT(names["second"], ElementsAre("child"));
}

TEST_F(CaptureTest, ChildThatEndsItsParentsRangeEndsNoneOfItsOwn) {
  const ProfiledProgram program = Profile({"fork_within_range"});
  ASSERT_THAT(program.captures, SizeIs(2));
  for (const CaptureSummary& capture : program.captures) {
    if (capture.path == options_.output) continue;
    EXPECT_THAT(Query(capture.path,
                      "SELECT range.text FROM NVTX_EVENTS AS range JOIN NVTX_EVENTS AS mark "
                      "ON mark.start BETWEEN range.start AND range.end WHERE mark.text = 'within'"),
                ElementsAre("child's"));
  }
}

TEST_F(CaptureTest, ProgramThatExecutesAnotherLosesNothing) {
  const ProfiledProgram program = Profile({"exec"});
  ASSERT_THAT(program.captures, SizeIs(2));
  EXPECT_THAT(Ranges(), ElementsAre("before exec"));
  EXPECT_THAT(Names(directory_ + "/run.pid_" + std::to_string(program.captures[0].pid) + ".sqlite", 59),
              ElementsAre("range", "range", "range"));
}

TEST_F(CaptureTest, ProfilersMarksOpenAndCloseTheWindow) {
  options_.capture_range = "profiler";
  Profile({"window"});
  EXPECT_THAT(Names(options_.output, 34), ElementsAre("start", "stop"));
  EXPECT_THAT(Rows("SELECT text, end > start FROM NVTX_EVENTS WHERE eventType = 59 ORDER BY start"),
              ElementsAre("within|1", "open within|1"));
}

TEST_F(CaptureTest, WithoutWindowAllIsRecorded) {
  Profile({"window"});
  EXPECT_THAT(Ranges(), ElementsAre("open before", "before", "within", "open within", "after"));
}

TEST_F(CaptureTest, WhatTheBufferCannotHoldIsDroppedAndCounted) {
  options_.buffer_mib = 1;
  const CaptureSummary capture = Capture({"ranges", "1000000"});
  EXPECT_GT(capture.num_dropped, 0);
  // A dropped push has no pop, so a range loses at most its end.
  EXPECT_LE(capture.num_ranges, 1000000);
  EXPECT_GE(capture.num_ranges + capture.num_dropped, 1000000);
  EXPECT_THAT(Query(capture.path, "SELECT COUNT(*), MIN(end >= start) FROM NVTX_EVENTS WHERE eventType = 59"),
              ElementsAre(std::to_string(capture.num_ranges) + "|1"));
  EXPECT_THAT(Query(capture.path, "SELECT text FROM DIAGNOSTIC_EVENT"),
              Contains(HasSubstr(std::to_string(capture.num_dropped) + " events were dropped")));
}

TEST_F(CaptureTest, TextIsCutAtTheLongestThereCanBe) {
  EXPECT_EQ(Capture({"long", "100000"}).num_truncated, 1);
  EXPECT_THAT(Rows("SELECT length(text) BETWEEN 32000 AND 32768 FROM NVTX_EVENTS WHERE eventType = 59"),
              ElementsAre("1"));
}

TEST_F(CaptureTest, OldFileDoesNotPassForTheNewOne) {
  Profile({"ranges", "1"});
  options_.overwrite = true;
  options_.command = {"true"};
  const auto program = ProfileProgram(options_).value();
  EXPECT_THAT(program.captures, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(options_.output));
}

TEST_F(CaptureTest, FileThatCannotBeMadeIsAnErrorBeforeTheProgramStarts) {
  options_.command = {"touch", directory_ + "/started"};
  std::filesystem::create_symlink("/nothing/there", directory_ + "/leads_nowhere.sqlite");
  for (const std::string& output :
       {std::string("/proc/nothing/run.sqlite"), std::string("/proc/run.sqlite"),
        directory_ + "/leads_nowhere.sqlite", directory_ + "/" + std::string(300, 'x') + ".sqlite"}) {
    options_.output = output;
    EXPECT_FALSE(ProfileProgram(options_).ok()) << output;
    EXPECT_FALSE(std::filesystem::exists(directory_ + "/started")) << output;
  }
}

}  // namespace
}  // namespace ott::profile
