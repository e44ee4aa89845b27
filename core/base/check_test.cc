#include "ott/core/base/check.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Check, PassesWithoutEvaluatingTheMessage) {
  int evaluated = 0;
  OTT_CHECK(true) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

TEST(CheckDeathTest, FailureNamesPlaceConditionAndMessage) {
  const int rank = 4;
  EXPECT_DEATH(OTT_CHECK(rank < 4) << "rank " << rank << " of 4",
               "check_test.cc:[0-9]+: check failed: rank < 4: rank 4 of 4\n");
}

TEST(Check, IsOneStatement) {
  bool reached_else = false;
  if (false)
    OTT_CHECK(true) << "bound to its own if";
  else
    reached_else = true;
  EXPECT_TRUE(reached_else);
}

}  // namespace
}  // namespace ott
