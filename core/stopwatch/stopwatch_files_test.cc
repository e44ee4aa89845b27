#include "ott/core/stopwatch/stopwatch_files.h"

#include <unistd.h>

#include <atomic>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::atomic<uint64_t> now_ns{0};

// A stopwatch that has measured 3 ms of "work".
class StopwatchFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(stopwatch_.Enable({}).ok());
    stopwatch_.Start("work");
    now_ns += 3'000'000;
    stopwatch_.End("work");
    stopwatch_.FinishIter();
  }

  std::string Contents(const std::string& name) const {
    const auto contents = ReadFile(options_.dir + "/" + name);
    return contents.ok() ? *contents : contents.status().ToString();
  }

  const StopwatchFilesOptions options_ = {
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
          "/rank_00003",
      "node7", 3, 8};
  Stopwatch stopwatch_{Stopwatch::Environment{Clock([] { return now_ns.load(); })}};
};

TEST_F(StopwatchFilesTest, AreMadeTogetherWithTheirDirectoryAndReplacedByTheNextOnes) {
  ASSERT_EQ(WriteStopwatchFiles(stopwatch_, options_), absl::OkStatus());
  StopwatchStats stats;
  ASSERT_TRUE(stats.ParseFromString(Contents("stopwatch.pb")));
  EXPECT_EQ(stats.rank(), 3);
  EXPECT_EQ(stats.world_size(), 8);
  EXPECT_EQ(stats.host(), "node7");
  EXPECT_EQ(stats.measurements(0).name(), "work");
  EXPECT_DOUBLE_EQ(stats.measurements(0).per_interval().total(), 0.003);
  EXPECT_THAT(Contents("stopwatch.json"), HasSubstr("\"host\": \"node7\""));
  EXPECT_THAT(Contents("stopwatch.csv"), StartsWith("kind,name,"));
  EXPECT_THAT(Contents("stopwatch.txt"), StartsWith("Stopwatch: 1 measured iterations"));
  stopwatch_.FinishIter();
  ASSERT_TRUE(WriteStopwatchFiles(stopwatch_, options_).ok());
  EXPECT_THAT(Contents("stopwatch.txt"), StartsWith("Stopwatch: 2 measured iterations"));
}

TEST_F(StopwatchFilesTest, AnErrorNamesTheFile) {
  const StopwatchFilesOptions nowhere = {"/proc/none", "", 0, 1};
  const absl::Status written = WriteStopwatchFiles(stopwatch_, nowhere);
  EXPECT_THAT(std::string(written.message()), HasSubstr("/proc/none"));
  ::testing::internal::CaptureStderr();
  WritingStopwatchFiles(nowhere)(stopwatch_);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace ott
