#include "ott/dist/comm/deadline.h"

#include <algorithm>
#include <chrono>

#include "gtest/gtest.h"

namespace ott {
namespace {

using std::chrono::duration;
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
  EXPECT_TRUE(Deadline::After(nanoseconds::max()).IsNever()) << "beyond the clock";
}

TEST(Deadline, EachStepBeforeIsASixteenthOfTheRestOrATenthOfASecondAndAllAreHalf) {
  for (const double all : {0.01, 0.5, 1.6, 10.0, 10000.0}) {
    for (const int steps : {0, 1, 2, 5, 20, 100000}) {
      const Deadline deadline =
          Deadline::After(std::chrono::duration_cast<nanoseconds>(duration<double>(all)));
      const double rest = deadline.Before(steps).Seconds();
      const double elapsed = all - duration<double>(deadline.Remaining()).count();
      const double expected = std::max(all / 2, all - steps * std::min(all / 16, 0.1));
      EXPECT_LE(rest, expected + 1e-9) << all << " and " << steps;
      EXPECT_GE(rest, expected - elapsed - 1e-9) << all << " and " << steps;
    }
  }
  EXPECT_TRUE(Deadline::Never().Before(3).IsNever());
}

}  // namespace
}  // namespace ott
