#include "ott/questions/waiting/waiting_answer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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

// Says of a run in which nobody is named what would have been found, or why that is not known.
void AnswerNobody(const ClusterStats& stats, Answer* answer) {
  const ArrivalStats* most = &stats.arrivals(0);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double detectable = kNever;
  // A rank is late at one of them, which need not be the one that tells most; but not by more than it is.
  double hidden = 0;
  int64_t num_iterations = 0;
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    num_iterations = std::max(num_iterations, arrivals.last_iteration() - arrivals.first_iteration() + 1);
    if (arrivals.num_intervals() > most->num_intervals()) most = &arrivals;
    const double at_it = arrivals.has_detectable_share() ? arrivals.detectable_share() : kNever;
    detectable = std::min(detectable, at_it);
    hidden = std::max(hidden, std::min(at_it, arrivals.most_caused_share()));
  }
  detectable = std::max(detectable, hidden);
  constexpr int64_t kFewest = SteadyTimeRecorder::kMinBlocks * SteadyTimeRecorder::kBaseLength;
  const auto takes_more = [](int64_t number) {
    return absl::StrCat("; that takes ", kFewest, " iterations to which all ranks came, and there are ",
                        number);
  };
  std::string why;
  if (!stats.missing_ranks().empty()) {
    why = absl::StrCat(": nothing from ",
                       FormatRanks({stats.missing_ranks().begin(), stats.missing_ranks().end()}));
  } else if (most->num_intervals() < kFewest) {
    why = takes_more(most->num_intervals());
  } else if (stats.has_straggler()) {
    why = absl::StrCat(": ", FormatRank(stats.straggler().rank(), stats.straggler().host()),
                       " works longer, and how long the others wait for it does not stand out");
  } else if (detectable <= kDetectableShare) {
    answer->set_finding(Answer::GOOD);
    answer->add_sentences(absl::StrFormat(
        "no rank holds the others up (one that costs %.0f%% of an iteration would have shown)",
        std::ceil(detectable * 100)));
    return;
  } else if (std::isfinite(detectable)) {
    why = absl::StrFormat("; only one that costs %.0f%% of an iteration would have shown",
                          std::ceil(detectable * 100));
  } else if (2 * most->num_left() >= most->num_intervals()) {
    why = absl::StrCat(": ranks do not wait at ", ArrivalPlace(*most), ", as ", most->num_left(), " of ",
                       most->num_intervals(), " times one left before the last came");
  } else if (num_iterations < kFewest) {
    why = takes_more(num_iterations);
  } else {
    why = absl::StrCat(": it is not known what would have shown at ", ArrivalPlace(*most),
                       ", where ranks may do unlike work");
  }
  answer->set_finding(Answer::CANNOT_TELL);
  answer->add_sentences(absl::StrCat("cannot tell who holds the others up", why));
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
    num_intervals = std::max(num_intervals, arrivals.num_intervals() - arrivals.num_left());
    error_bound = std::max(error_bound, arrivals.error_bound());
    if (arrivals.has_hold_up()) NameRank(arrivals.hold_up().rank(), &answer);
    for (const Hiccups& hiccups : arrivals.hiccups()) {
      if (!hiccups.is_pause()) NameRank(hiccups.rank(), &answer);
    }
  }
  if (std::any_of(stats->arrivals().begin(), stats->arrivals().end(), HoldsOthersUp)) {
    answer.set_finding(Answer::BAD);
  } else {
    AnswerNobody(*stats, &answer);
  }
  AddSentences(WaitingLines(*stats), &answer);
  answer.set_how_sure(absl::StrFormat(
      "up to %d moments at which all waited for the last one; where ranks are alike, the rule is to name one "
      "in %.2g %% of the "
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
