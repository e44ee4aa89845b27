#include "tools/report/answers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/steady_time.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/dist/stats/cluster_table.h"
#include "ott/questions/faster/report.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/origin/origin_text.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"
#include "tools/report/comparison_document.h"
#include "tools/report/display_text.h"

namespace ott::report {
namespace {

// Where a rank may work longer by more than this share and not be found, that none was found is no good news.
constexpr double kLargestMissed = 0.5;

// Later starts of the same job, here and in directories of their own.
std::string DescribeStarts(const RunReport& report) {
  std::string text;
  for (const Resumption& resumption : report.info->resumptions()) {
    absl::StrAppend(&text, ", continued from iteration ", resumption.start_iteration());
  }
  if (!report.attempts.empty()) {
    absl::StrAppend(&text, ", started again in attempt_", absl::StrJoin(report.attempts, ", attempt_"),
                    ": runs to report on of their own");
  }
  return text;
}

Answer WhoIsSlow(const RunReport& report) {
  Answer answer = {"slow", "Who is slow?", Grade::kUnknown, "Nothing was measured.", "", ""};
  if (!report.stats) return answer;
  const ClusterStats& stats = *report.stats;
  answer.text = WithoutNewline(FormatSlowRanks(stats));
  answer.picture = "heat_map";
  if (!stats.has_straggler() && stats.slow_measurements_size() > 0) {
    // The measurement is the news, not that no rank is slow in all.
    const size_t end = std::min(answer.text.find('\n'), answer.text.size() - 1);
    answer.text = absl::StrCat(answer.text.substr(end + 1), "\n", answer.text.substr(0, end));
  }
  if (stats.has_straggler() || stats.slow_measurements_size() > 0) {
    answer.grade = Grade::kBad;
    answer.certainty = absl::StrFormat(
        "intervals hold the truth in 95 of 100 runs; where ranks are alike, the rule is to name one for its "
        "work in %.2g %% "
        "of the runs, for a measurement in %.2g %%",
        kWorkError * 100, kMeasurementError * 100);
  } else if (stats.has_detectable()) {
    answer.grade = stats.detectable() <= kLargestMissed ? Grade::kGood : Grade::kUnknown;
    answer.certainty = absl::StrFormat(
        "%d measured iterations; an excess of %.0f %% is found in four of five runs, a smaller one less "
        "often",
        stats.max_measured_iters(), std::ceil(stats.detectable() * 100));
  } else if (stats.num_ranks() < 2) {
    answer.grade = Grade::kGood;
  }
  return answer;
}

Answer WhatWouldBeSaved(const RunReport& report) {
  Answer answer = {"saved", "What would mending it save?", Grade::kUnknown, "", "", ""};
  if (!report.what_if) {
    answer.text = EscapeControlCharacters(report.what_if_problem);
    return answer;
  }
  const WhatIfAnswer& what_if = *report.what_if;
  answer.grade = what_if.verdict() == WHAT_IF_EVEN                                  ? Grade::kGood
                 : what_if.verdict() == WHAT_IF_CANNOT_TELL || what_if.incomplete() ? Grade::kUnknown
                                                                                    : Grade::kBad;
  answer.text = whatif::FormatWhatIfLine(what_if);
  if (what_if.has_best_repairs_together()) {
    absl::StrAppend(&answer.text, "\n", whatif::FormatRepair(what_if.best_repairs_together(), what_if));
  }
  answer.certainty = absl::StrFormat(
      "a replay of %d %ss of %d ranks, which is off by %.2f %% of what was measured (limit %.0f %%)",
      what_if.num_steps(), EscapeControlCharacters(what_if.step_word()), what_if.num_ranks(),
      what_if.replay_error() * 100, whatif::kMaxReplayError * 100);
  answer.picture = "what_if";
  return answer;
}

Answer WhoWaitsForWhom(const RunReport& report) {
  Answer answer = {"waiting",
                   "Who waits for whom?",
                   Grade::kUnknown,
                   "Not recorded: no measurement in which ranks wait for each other was declared collective.",
                   "",
                   ""};
  if (!report.stats || report.stats->arrivals().empty()) {
    if (report.info && report.info->config().stopwatch().collective_measurements_size() > 0) {
      answer.text = report.gather_age
                        ? "cannot tell: no iteration was measured in which ranks came to a collective"
                        : "cannot tell: nothing was gathered of all ranks; there is no cluster_stats.json";
    }
    return answer;
  }
  answer.picture = "arrivals";
  int64_t num_intervals = 0;
  double error_bound = 0;
  bool is_anyone = false;
  for (const ArrivalStats& arrivals : report.stats->arrivals()) {
    num_intervals = std::max(num_intervals, arrivals.num_intervals());
    error_bound = std::max(error_bound, arrivals.error_bound());
    is_anyone |=
        arrivals.has_hold_up() || std::any_of(arrivals.hiccups().begin(), arrivals.hiccups().end(),
                                              [](const Hiccups& hiccups) { return !hiccups.is_pause(); });
  }
  constexpr int64_t kFewest = SteadyTimeRecorder::kMinBlocks * SteadyTimeRecorder::kBaseLength;
  const std::string found = FormatWaiting(*report.stats);
  if (is_anyone) {
    answer.grade = Grade::kBad;
    answer.text = WithoutNewline(found);
  } else if (num_intervals < kFewest) {
    answer.text = WithoutNewline(absl::StrCat("cannot tell; that takes ", kFewest,
                                              " iterations to which all ranks came, and there are ",
                                              num_intervals, "\n", found));
  } else {
    answer.grade = Grade::kGood;
    answer.text = WithoutNewline(absl::StrCat("no rank holds the others up\n", found));
  }
  answer.certainty = absl::StrFormat(
      "up to %d moments to which all came; where ranks are alike, the rule is to name one in %.2g %% of the "
      "runs; %s",
      num_intervals, kWorkError * 100,
      error_bound == 0 ? "one clock, which all ranks read"
                       : absl::StrCat("two ranks' clocks are compared within ", FormatSeconds(error_bound)));
  return answer;
}

Answer DoesItHang(const RunReport& report) {
  Answer answer = {
      "hang", "Does it hang?", Grade::kUnknown, "Not recorded: no rank kept a flight recorder.", "", ""};
  if (report.hang) {
    answer.text = report.hang->verdict();
    answer.grade = report.hang->answer() == HangVerdict::HANGING       ? Grade::kBad
                   : report.hang->answer() == HangVerdict::NOT_HANGING ? Grade::kGood
                                                                       : Grade::kUnknown;
    const int num_ranks = report.hang->ranks_size();
    const int num_unknown = report.hang->unknown_size();
    answer.certainty = absl::StrCat("by the flight recorders of ", num_ranks - num_unknown, " of ", num_ranks,
                                    num_ranks == 1 ? " rank" : " ranks", "; a rank is blamed on proof alone");
    answer.picture = "hang";
  }
  // How long they have waited differs, if it is the same hang.
  if (report.earlier_hang &&
      (!report.hang || report.hang->answer() != report.earlier_hang->answer() ||
       !std::equal(report.hang->culprits().begin(), report.hang->culprits().end(),
                   report.earlier_hang->culprits().begin(), report.earlier_hang->culprits().end()))) {
    absl::StrAppend(&answer.text, "\nfound while it stood: ", report.earlier_hang->verdict());
  }
  return answer;
}

Answer WhatDiverged(const std::string& id, const std::string& question, const CheckHistory& checks,
                    const std::string& otherwise) {
  if (checks.verdicts.empty()) return {id, question, Grade::kUnknown, otherwise, "", ""};
  Answer answer = {id, question, Grade::kGood, FormatSummary(id, checks.summary), "", "checks"};
  if (const CrossCheckVerdict* const first = checks.first_divergence()) {
    answer.grade = Grade::kBad;
    absl::StrAppend(&answer.text, "\nfirst: ", WithoutNewline(FormatVerdict(*first)));
  } else if (!checks.summary.passed()) {
    answer.grade = Grade::kUnknown;
  }
  const int64_t first = checks.verdicts.front().iteration();
  const int64_t last = checks.verdicts.back().iteration();
  answer.certainty = absl::StrCat(checks.verdicts.size(), checks.verdicts.size() == 1 ? " check" : " checks",
                                  first == last ? absl::StrCat(" at iteration ", first)
                                                : absl::StrCat(" from iteration ", first, " to ", last));
  return answer;
}

Answer DoTheReplicasAgree(const RunReport& report) {
  Answer answer = WhatDiverged("replicas", "Do the replicas agree?", report.replicas,
                               "Not checked while it ran; `ott crosscheck RUN` checks its dumps.");
  if (!answer.certainty.empty())
    absl::StrAppend(&answer.certainty, ", by 128-bit digests of every tensor that is compared");
  return answer;
}

Answer HasEachRankItsOwn(const RunReport& report) {
  return WhatDiverged("distinct", "Has each rank its own data?", report.distinct, "");
}

Answer IsItTheReferenceRun(const RunReport& report) {
  Answer answer =
      WhatDiverged("reference", "Is it the reference run?", report.reference,
                   "Not checked while it ran; `ott compare REFERENCE RUN` compares the dumps of both.");
  if (answer.certainty.empty()) return answer;
  const CrossCheckVerdict& last = report.reference.verdicts.back();
  absl::StrAppendFormat(&answer.certainty, ", of every element, within atol %g and rtol %g", last.atol(),
                        last.rtol());
  if (report.error_trend.num_tensors() > 0) answer.picture = "errors";
  return answer;
}

Answer WhichOperationMadeIt(const RunReport& report) {
  Answer answer = {"origin",
                   "Which operation made it?",
                   Grade::kUnknown,
                   EscapeControlCharacters(report.origin_problem),
                   "",
                   "origin"};
  if (!report.origin) return answer;
  const OriginVerdict& origin = *report.origin;
  answer.text = origin.verdict();
  answer.grade = origin.kind() == "none"      ? Grade::kGood
                 : origin.kind() == "unknown" ? Grade::kUnknown
                                              : Grade::kBad;
  answer.certainty =
      absl::StrCat(origin.num_compared(), " operations on ", origin.world_size(), " ranks were compared ",
                   origin.perturbed().empty() ? "bit for bit" : "within what rounding explains");
  return answer;
}

}  // namespace

std::string DescribeRun(const RunReport& report) {
  if (!report.info) return "a run without its run.json";
  const std::set<std::string> hosts(report.info->hosts().begin(), report.info->hosts().end());
  const int num_ranks = report.info->world_size();
  return absl::StrCat(num_ranks, num_ranks == 1 ? " rank on " : " ranks on ",
                      hosts.size() == 1 ? "host " + EscapeControlCharacters(*hosts.begin())
                                        : absl::StrCat(hosts.size(), " hosts"),
                      report.info->started().empty() ? "" : ", started ",
                      EscapeControlCharacters(report.info->started()), DescribeStarts(report),
                      ", optim_test_tools ", EscapeControlCharacters(report.info->version()));
}

std::vector<Answer> Answers(const RunReport& report) {
  std::vector<Answer> answers = {WhoIsSlow(report),  WhatWouldBeSaved(report),   WhoWaitsForWhom(report),
                                 DoesItHang(report), DoTheReplicasAgree(report), IsItTheReferenceRun(report)};
  if (!report.distinct.verdicts.empty()) answers.push_back(HasEachRankItsOwn(report));
  if (report.origin || !report.origin_problem.empty()) answers.push_back(WhichOperationMadeIt(report));
  if (report.comparison) {
    answers.push_back(DidItBecomeFaster(*report.comparison, kBeforeAndAfter));
  }
  return answers;
}

std::vector<Details> DetailsOf(const RunReport& report) {
  std::vector<Details> details;
  if (report.stats) details.push_back({"Where the time goes", FormatClusterTable(*report.stats)});
  if (report.what_if) details.push_back({"What would be saved", whatif::FormatWhatIf(*report.what_if)});
  if (report.hang && report.hang->answer() != HangVerdict::NOT_HANGING) {
    details.push_back({"Where the ranks stand", FormatHangVerdict(*report.hang)});
  }
  if (report.earlier_hang)
    details.push_back({"Where the ranks stood", FormatHangVerdict(*report.earlier_hang)});
  if (const std::string trend = report.error_trend.ToString(); !trend.empty()) {
    details.push_back({"Errors against the reference", trend});
  }
  if (report.origin) details.push_back({"How it spreads", origin::FormatOrigin(*report.origin)});
  if (report.comparison) details.push_back({"Before and after", ab::ToText(*report.comparison)});
  return details;
}

}  // namespace ott::report
