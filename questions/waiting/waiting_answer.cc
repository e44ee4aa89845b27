#include "ott/questions/waiting/waiting_answer.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/steady_time.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/questions/waiting/arrival_text.h"

namespace ott::waiting {
namespace {

// A rank for which others wait again and again; a pause alone is an event.
bool HoldsOthersUp(const ArrivalStats& arrivals) {
  return arrivals.has_hold_up() || std::any_of(arrivals.hiccups().begin(), arrivals.hiccups().end(),
                                               [](const Hiccups& hiccups) { return !hiccups.is_pause(); });
}

Answer AnswerWithoutArrivals(bool has_collectives, bool was_gathered) {
  Answer answer = MakeAnswer(kQuestion);
  if (!has_collectives) {
    answer.add_sentences(
        "Not recorded: no measurement in which ranks wait for each other was declared collective.");
    return answer;
  }
  answer.set_finding(Answer::CANNOT_TELL);
  answer.add_sentences(
      was_gathered ? "cannot tell: no iteration was measured in which ranks came to a collective"
                   : "cannot tell: nothing was gathered of all ranks; there is no cluster_stats.json");
  return answer;
}

}  // namespace

Answer AnswerWaiting(const std::optional<ClusterStats>& stats, bool has_collectives, bool was_gathered) {
  if (!stats || stats->arrivals().empty()) return AnswerWithoutArrivals(has_collectives, was_gathered);
  Answer answer = MakeAnswer(kQuestion);
  SetEvidence(*stats, &answer);
  answer.add_pictures("arrivals");
  int64_t num_intervals = 0;
  double error_bound = 0;
  for (const ArrivalStats& arrivals : stats->arrivals()) {
    num_intervals = std::max(num_intervals, arrivals.num_intervals());
    error_bound = std::max(error_bound, arrivals.error_bound());
    if (arrivals.has_hold_up()) answer.add_ranks(arrivals.hold_up().rank());
    for (const Hiccups& hiccups : arrivals.hiccups()) {
      if (!hiccups.is_pause()) answer.add_ranks(hiccups.rank());
    }
  }
  constexpr int64_t kFewest = SteadyTimeRecorder::kMinBlocks * SteadyTimeRecorder::kBaseLength;
  if (std::any_of(stats->arrivals().begin(), stats->arrivals().end(), HoldsOthersUp)) {
    answer.set_finding(Answer::BAD);
  } else if (!stats->missing_ranks().empty()) {
    answer.set_finding(Answer::CANNOT_TELL);
    answer.add_sentences(
        absl::StrCat("cannot tell who holds the others up: nothing from ",
                     FormatRanks({stats->missing_ranks().begin(), stats->missing_ranks().end()})));
  } else if (num_intervals < kFewest) {
    answer.set_finding(Answer::CANNOT_TELL);
    answer.add_sentences(absl::StrCat("cannot tell who holds the others up; that takes ", kFewest,
                                      " iterations to which all ranks came, and there are ", num_intervals));
  } else {
    answer.set_finding(Answer::GOOD);
    answer.add_sentences("no rank holds the others up");
  }
  AddSentences(WaitingLines(*stats), &answer);
  answer.set_how_sure(absl::StrFormat(
      "up to %d moments to which all came; where ranks are alike, the rule is to name one in %.2g %% of the "
      "runs; %s",
      num_intervals, kHoldUpError * 100,
      error_bound == 0 ? "one clock, which all ranks read"
                       : absl::StrCat("two ranks' clocks are compared within ", FormatSeconds(error_bound))));
  return answer;
}

void AddNextOf(const std::string& run_dir, Answer* answer) {
  if (answer->finding() == Answer::BAD) AddNext({"whatif", run_dir}, answer);
}

}  // namespace ott::waiting
