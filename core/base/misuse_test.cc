#include "ott/core/base/misuse.h"

#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/misuse_capture.h"
#include "ott/core/base/misuse_log.h"

namespace ott::internal {
namespace {

TEST(MisuseLog, PrintsTheFirstTenthAndHundredthOfAKindAndCountsAll) {
  MisuseLog log("stopwatch");
  ::testing::internal::CaptureStderr();
  for (int i = 1; i <= 120; ++i)
    log.Report(OnMisuse::kLogAndCount, "End without Start", absl::StrCat("end ", i));
  log.Report(OnMisuse::kLogAndCount, "Start twice", "start");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "ott: stopwatch: end 1\nott: stopwatch: end 10 (10 times so far)\n"
            "ott: stopwatch: end 100 (100 times so far)\nott: stopwatch: start\n");
  const std::vector<MisuseCount> counts = log.Counts();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].kind, "End without Start");
  EXPECT_EQ(counts[0].count, 120);
  EXPECT_EQ(counts[1].count, 1);
  EXPECT_EQ(log.total(), 121);
  log.Clear();
  EXPECT_EQ(log.total(), 0);
}

TEST(MisuseLog, KindsThatAreTooManyCountAsOne) {
  MisuseLog log("stopwatch");
  const MisuseCapture quiet;
  for (int i = 0; i < 1000; ++i) log.Report(OnMisuse::kLogAndCount, absl::StrCat(i), "");
  EXPECT_EQ(log.Counts().size(), MisuseLog::kMaxKinds + 1);
  EXPECT_EQ(log.Counts().back().kind, "other misuses");
  EXPECT_EQ(log.total(), 1000);
}

TEST(MisuseLogDeathTest, AbortsWhereAskedTo) {
  MisuseLog log("stopwatch");
  EXPECT_DEATH(log.Report(OnMisuse::kAbort, "kind", "ended twice"), "ott: stopwatch: ended twice");
  setenv("OTT_ON_MISUSE", "log", 1);
  log.Report(OnMisuse::kLogAndCount, "kind", "ended twice");
  unsetenv("OTT_ON_MISUSE");
  EXPECT_DEATH(
      {
        setenv("OTT_ON_MISUSE", "abort", 1);
        log.Report(OnMisuse::kLogAndCount, "kind", "ended twice");
      },
      "ott: stopwatch: ended twice");
}

TEST(MisuseLog, IsCapturedWhereItsThreadAsksForIt) {
  MisuseLog log("x");
  ::testing::internal::CaptureStderr();
  {
    const MisuseCapture outer;
    {
      const MisuseCapture inner;
      log.Report(OnMisuse::kLogAndCount, "a", "first");
      EXPECT_TRUE(inner.is_printed());
      EXPECT_FALSE(inner.aborts());
      log.Report(OnMisuse::kAbort, "b", "second");
      EXPECT_TRUE(inner.aborts());
      EXPECT_EQ(inner.message(), "x: first\nx: second");
      std::thread([&] { log.Report(OnMisuse::kLogAndCount, "c", "on another thread"); }).join();
    }
    EXPECT_EQ(outer.message(), "");
    log.Report(OnMisuse::kAbort, "b", "third");
    EXPECT_EQ(outer.message(), "x: third");
  }
  log.Report(OnMisuse::kLogAndCount, "d", "afterwards");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "ott: x: on another thread\nott: x: afterwards\n");
}

TEST(Misuse, NamesAreQuotedOnOneLine) {
  EXPECT_EQ(Quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\nd\"");
  EXPECT_EQ(Quoted("größe"), "\"größe\"");
}

TEST(Misuse, PlacesAreTheCallersOwn) {
  const Place place = Place::Current();
  EXPECT_EQ(At(place), std::string(__FILE__) + ":" + std::to_string(__LINE__ - 1));
}

TEST(Misuse, ThreadsAreTheKernels) {
  EXPECT_EQ(ThisThreadId(), getpid());
  std::thread([] { EXPECT_NE(ThisThreadId(), getpid()); }).join();
}

}  // namespace
}  // namespace ott::internal
