#include "ott/core/kernel_profile/rank_in_name.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace ott::kernels {
namespace {

TEST(RankInName, FollowsTheLastRankOfTheFilesNameThatHasANumber) {
  const std::pair<const char*, int> names[] = {{"rank3", 3},
                                               {"rank_00003.json", 3},
                                               {"rank-12.pt.trace.json", 12},
                                               {"trace.rank.7.json", 7},
                                               {"rank1_rank0", 0},
                                               {"rank1_rank", 1},
                                               {"rank4.of_rank_x", 4},
                                               {"crank", -1},
                                               {"abc7", -1},
                                               {"rank__3", -1},
                                               {"rank_-3", -1},
                                               {"rank2_rank_-3", 2},
                                               {"1-TP--3", -1},
                                               {"rank_/trace", -1},
                                               {"rank3/trace", -1},
                                               {"rank1/rank2.json", 2},
                                               {"", -1},
                                               {"rank", -1},
                                               {"1-TP-3.trace.json.gz", 3},
                                               {"1-TP-3-PP-0", -1},
                                               {"1-TP-3-DP-0", -1},
                                               {"1-TP-x", -1},
                                               {"rank0-TP-3", 0},
                                               {"a-TP-0/1-TP-4", 4}};
  for (const auto& [name, rank] : names) EXPECT_EQ(RankInName(name), rank) << name;
}

}  // namespace
}  // namespace ott::kernels
