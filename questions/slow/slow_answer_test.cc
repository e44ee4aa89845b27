#include "ott/questions/slow/slow_answer.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/slow/cluster_table.h"

namespace ott::slow {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Whoever is named is bad news; nobody is good news only if all ranks are there and a small excess was found.
TEST(AnswerSlow, IsGoodOnlyWhereAnExcessWouldHaveBeenSeen) {
  EXPECT_THAT(AnswerSlow(std::nullopt).sentences(), ElementsAre("Nothing was measured."));
  for (int bits = 0; bits < 32; ++bits) {
    for (const double detectable : {0.0, kLargestMissed / 2, kLargestMissed, kLargestMissed * 1.01, 10.0}) {
      ClusterStats stats;
      stats.set_num_ranks((bits & 1) != 0 ? 1 : 2);
      stats.set_max_measured_iters(70);
      if ((bits & 2) != 0) stats.add_missing_ranks(1);
      if ((bits & 4) != 0) stats.set_detectable(detectable);
      if ((bits & 8) != 0) stats.mutable_straggler()->set_rank(3);
      for (const int rank : {5, 3}) {
        if ((bits & 16) != 0) stats.add_slow_measurements()->set_rank(rank);
      }
      Answer::Finding expected = Answer::CANNOT_TELL;
      if (bits == 1) expected = Answer::NOT_ASKED;
      if ((bits & 6) == 4 && detectable <= kLargestMissed) expected = Answer::GOOD;
      if (bits >= 8) expected = Answer::BAD;
      Answer answer = AnswerSlow(stats);
      AddNextOf("run", &answer);
      EXPECT_EQ(answer.evidence(), stats.SerializeAsString());
      EXPECT_THAT(answer.sentences(), ElementsAreArray(SlowRankLines(stats)));
      EXPECT_THAT(answer.pictures(), ElementsAre("heat_map"));
      EXPECT_EQ(absl::StrJoin(answer.next(), ";"), bits >= 8 ? "ott whatif run" : "");
      EXPECT_EQ(answer.finding(), expected) << bits << " " << detectable;
      const std::string found =
          absl::StrCat("70 measured iterations; an excess of ", std::ceil(detectable * 100),
                       " % is found in four of five runs, a smaller one less often");
      EXPECT_EQ(answer.how_sure(),
                bits >= 8
                    ? "intervals hold the truth in 95 of 100 runs; where ranks are alike, the rule is to "
                      "name one for its work in 0.25 % of the runs, for a measurement in 0.5 %"
                : stats.has_detectable() ? found
                                         : "");
      // The straggler first, and each once.
      EXPECT_EQ(absl::StrJoin(answer.ranks(), " "), bits >= 24   ? "3 5"
                                                    : bits >= 16 ? "5 3"
                                                    : bits >= 8  ? "3"
                                                                 : "");
    }
  }
}

}  // namespace
}  // namespace ott::slow
