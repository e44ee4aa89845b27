#include "ott/questions/slow/slow_answer.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/slow/cluster_table.h"

namespace ott::slow {
namespace {

Answer::Finding FindingOfRanks(const ClusterStats& stats) {
  if (stats.has_straggler() || stats.slow_measurements_size() > 0) return Answer::BAD;
  // Those that are missing may be slow.
  if (stats.missing_ranks_size() > 0) return Answer::CANNOT_TELL;
  if (stats.has_detectable()) {
    return stats.detectable() <= kLargestMissed ? Answer::GOOD : Answer::CANNOT_TELL;
  }
  // One rank alone has nobody to be slower than.
  return stats.num_ranks() < 2 ? Answer::NOT_ASKED : Answer::CANNOT_TELL;
}

}  // namespace

Answer AnswerSlow(const std::optional<ClusterStats>& stats) {
  Answer answer = MakeAnswer(kQuestion);
  if (!stats) {
    answer.add_sentences("Nothing was measured.");
    return answer;
  }
  answer.set_finding(FindingOfRanks(*stats));
  AddSentences(SlowRankLines(*stats), &answer);
  SetEvidence(*stats, &answer);
  if (stats->has_straggler()) NameRank(stats->straggler().rank(), &answer);
  for (const SlowMeasurement& slow : stats->slow_measurements()) NameRank(slow.rank(), &answer);
  answer.add_pictures("heat_map");
  if (answer.finding() == Answer::BAD) {
    answer.set_how_sure(
        absl::StrFormat("intervals hold the truth in 95 of 100 runs; where ranks are alike, the rule is to "
                        "name one for its work in %.2g %% of the runs, for a measurement in %.2g %%",
                        kWorkError * 100, kMeasurementError * 100));
  } else if (stats->has_detectable()) {
    answer.set_how_sure(
        absl::StrFormat("%d measured iterations; an excess of %.0f %% is found in four of five runs, a "
                        "smaller one less often",
                        stats->max_measured_iters(), std::ceil(stats->detectable() * 100)));
  }
  return answer;
}

void AddNextOf(const std::string& run_dir, Answer* answer) {
  if (answer->finding() == Answer::BAD) AddNext({"whatif", run_dir}, answer);
}

}  // namespace ott::slow
