#include "ott/core/stopwatch/stopwatch_files.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "stopwatch_for_test.h"

namespace ott {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(StopwatchTest, FilesAreMadeTogetherWithTheirDirectoryAndReplacedByTheNextOnes) {
  const StopwatchFilesOptions options = {::testing::TempDir() + "/files/rank_00003", "node7", 3, 8, 0.5, 70};
  const auto contents = [&](const std::string& name) {
    return ReadFile(options.dir + "/" + name).value_or("none");
  };
  Enable();
  Measure("work", 3);
  stopwatch_.FinishIter();
  ASSERT_EQ(WriteStopwatchFiles(stopwatch_, options), absl::OkStatus());
  StopwatchStats stats;
  ASSERT_TRUE(stats.ParseFromString(contents("stopwatch.pb")));
  EXPECT_EQ(stats.rank(), 3);
  EXPECT_EQ(stats.world_size(), 8);
  EXPECT_EQ(stats.host(), "node7");
  EXPECT_EQ(stats.observer_thread_seconds(), 0.5);
  EXPECT_EQ(stats.start_iteration(), 70);
  EXPECT_EQ(stats.measurements(0).name(), "work");
  EXPECT_DOUBLE_EQ(stats.measurements(0).per_interval().total(), 0.003);
  EXPECT_THAT(contents("stopwatch.json"), HasSubstr("\"host\": \"node7\""));
  EXPECT_THAT(contents("stopwatch.csv"), StartsWith("kind,name,"));
  EXPECT_THAT(contents("stopwatch.txt"), StartsWith("Stopwatch: 1 measured iterations"));
  stopwatch_.FinishIter();
  ASSERT_TRUE(WriteStopwatchFiles(stopwatch_, options).ok());
  EXPECT_THAT(contents("stopwatch.txt"), StartsWith("Stopwatch: 2 measured iterations"));
}

TEST_F(StopwatchTest, AnErrorOfItsFilesNamesTheFile) {
  const StopwatchFilesOptions nowhere = {"/proc/none", "", 0, 1};
  EXPECT_THAT(std::string(WriteStopwatchFiles(stopwatch_, nowhere).message()), HasSubstr("/proc/none"));
  EXPECT_THAT(Printed([&] { WritingStopwatchFiles(nowhere)(stopwatch_); }), HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace ott
