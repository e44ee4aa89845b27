#include "ott/dist/comm/deadline.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Deadline, PassesAtItsMoment) {
  EXPECT_TRUE(Deadline::After(seconds(0)).Passed());
  EXPECT_EQ(Deadline::After(seconds(-1)).Remaining(), seconds(0));
  const Deadline later = Deadline::After(seconds(3600));
  EXPECT_FALSE(later.Passed());
  EXPECT_GT(later.Remaining(), seconds(3500));
  EXPECT_LE(later.Remaining(), seconds(3600));
  EXPECT_DOUBLE_EQ(later.Seconds(), 3600);
}

TEST(Deadline, NowHasPassedAndNeverDoesNot) {
  EXPECT_TRUE(Deadline::Now().Passed());
  EXPECT_EQ(Deadline::Now().Remaining(), seconds(0));
  EXPECT_FALSE(Deadline::Never().Passed());
  EXPECT_TRUE(Deadline::Never().IsNever());
}

TEST(Deadline, ADurationBeyondTheClockIsNever) { EXPECT_TRUE(Deadline::After(nanoseconds::max()).IsNever()); }

}  // namespace
}  // namespace ott
