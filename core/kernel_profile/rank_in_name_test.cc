#include "ott/core/kernel_profile/rank_in_name.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace ott::kernels {
namespace {

TEST(RankInName, FollowsTheLastRankOfTheFilesNameThatHasANumber) {
  // The empty name has none either.
  const std::string names =
      "rank3=3 rank_00003.json=3 rank-12.pt.trace.json=12 trace.rank.7.json=7 rank1_rank0=0"
      " rank1_rank=1 rank4.of_rank_x=4 crank=-1 abc7=-1 rank__3=-1 rank_-3=-1 rank2_rank_-3=2"
      " 1-TP--3=-1 rank_/trace=-1 rank3/trace=-1 rank1/rank2.json=2 rank=-1"
      " 1-TP-3.trace.json.gz=3 1-TP-3-PP-0=-1 1-TP-3-DP-0=-1 1-TP-x=-1 rank0-TP-3=0"
      " a-TP-0/1-TP-4=4 =-1";
  for (const absl::string_view row : absl::StrSplit(names, ' ')) {
    const std::vector<std::string> parts = absl::StrSplit(row, '=');
    EXPECT_EQ(std::to_string(RankInName(parts[0])), parts[1]) << row;
  }
}

}  // namespace
}  // namespace ott::kernels
