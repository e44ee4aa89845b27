#include "tools/profile/capture_receiver.h"

#include "gtest/gtest.h"

namespace ott::profile {
namespace {

TEST(CapturePath, FirstProcessHasTheNameThatWasAskedFor) {
  EXPECT_EQ(CapturePath("out/run.sqlite", -1, 1234, 0), "out/run.sqlite");
  EXPECT_EQ(CapturePath("run", -1, 1234, 0), "run");
}

TEST(CapturePath, RankIsInTheName) {
  EXPECT_EQ(CapturePath("out/run.sqlite", 3, 1234, 0), "out/run.rank_00003.sqlite");
  EXPECT_EQ(CapturePath("out.d/run", 3, 1234, 0), "out.d/run.rank_00003");
}

TEST(CapturePath, FurtherProcessesHaveTheirIdsInTheName) {
  EXPECT_EQ(CapturePath("run.sqlite", -1, 1234, 1), "run.pid_1234.sqlite");
  EXPECT_EQ(CapturePath("run.sqlite", 3, 1234, 1), "run.rank_00003.pid_1234.sqlite");
  EXPECT_EQ(CapturePath("run.sqlite", -1, 1234, 2), "run.pid_1234_2.sqlite");
}

TEST(CapturePath, HiddenFileHasNoExtension) {
  EXPECT_EQ(CapturePath("out/.run", 0, 1, 0), "out/.run.rank_00000");
  EXPECT_EQ(CapturePath(".run", 0, 1, 0), ".run.rank_00000");
}

}  // namespace
}  // namespace ott::profile
