#include "ott/core/base/misuse.h"

#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"
#include "ott/core/base/misuse_capture.h"

namespace ott::internal {
namespace {

TEST(Misuse, IsLoggedOrAborts) {
  ::testing::internal::CaptureStderr();
  ReportMisuse(OnMisuse::kLogAndCount, "ended twice");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "ott: ended twice\n");
}

TEST(MisuseDeathTest, AbortsWhereAskedTo) {
  EXPECT_DEATH(ReportMisuse(OnMisuse::kAbort, "ended twice"), "ott: ended twice");
}

TEST(Misuse, IsCapturedWhereItsThreadAsksForIt) {
  ::testing::internal::CaptureStderr();
  {
    const MisuseCapture outer;
    {
      const MisuseCapture inner;
      ReportMisuse(OnMisuse::kAbort, "first");
      ReportMisuse(OnMisuse::kLogAndCount, "second");
      EXPECT_EQ(inner.message(), "first\nsecond");
      std::thread([] { ReportMisuse(OnMisuse::kLogAndCount, "on another thread"); }).join();
    }
    EXPECT_EQ(outer.message(), "");
    ReportMisuse(OnMisuse::kAbort, "third");
    EXPECT_EQ(outer.message(), "third");
  }
  ReportMisuse(OnMisuse::kLogAndCount, "afterwards");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "ott: on another thread\nott: afterwards\n");
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
