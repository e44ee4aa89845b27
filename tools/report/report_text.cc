#include "tools/report/report_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/stats/cluster_table.h"
#include "ott/dist/whatif/what_if_text.h"

namespace ott::report {
namespace {

std::string WithoutNewline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

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
  const std::string question = "Who is slow?";
  if (!report.stats) return {question, Grade::kUnknown, "Nothing was measured."};
  const ClusterStats& stats = *report.stats;
  const bool anyone =
      stats.has_straggler() || stats.slow_measurements_size() > 0 ||
      std::any_of(stats.arrivals().begin(), stats.arrivals().end(), [](const ArrivalStats& arrivals) {
        return arrivals.has_hold_up() ||
               std::any_of(arrivals.hiccups().begin(), arrivals.hiccups().end(),
                           [](const Hiccups& hiccups) { return !hiccups.is_pause(); });
      });
  const bool is_told = stats.has_detectable() || stats.num_ranks() < 2;
  return {question,
          anyone    ? Grade::kBad
          : is_told ? Grade::kGood
                    : Grade::kUnknown,
          WithoutNewline(FormatSlowest(stats))};
}

Answer WhatWouldBeSaved(const RunReport& report) {
  const std::string question = "What would mending it save?";
  if (!report.what_if) return {question, Grade::kUnknown, EscapeControlCharacters(report.what_if_problem)};
  const WhatIfAnswer& answer = *report.what_if;
  const Grade grade = answer.verdict() == WHAT_IF_EVEN                                 ? Grade::kGood
                      : answer.verdict() == WHAT_IF_CANNOT_TELL || answer.incomplete() ? Grade::kUnknown
                                                                                       : Grade::kBad;
  std::string text = whatif::FormatWhatIfLine(answer);
  if (answer.has_best_repairs_together()) {
    absl::StrAppend(&text, "\n", whatif::FormatRepair(answer.best_repairs_together(), answer));
  }
  return {question, grade, std::move(text)};
}

Answer WhatDiverged(const std::string& question, const std::string& subject, const CheckHistory& checks,
                    const std::string& otherwise) {
  if (checks.verdicts.empty()) return {question, Grade::kUnknown, otherwise};
  Answer answer = {question, Grade::kGood, FormatSummary(subject, checks.summary)};
  if (const CrossCheckVerdict* const first = checks.first_divergence()) {
    answer.grade = Grade::kBad;
    absl::StrAppend(&answer.text, "\nfirst: ", WithoutNewline(FormatVerdict(*first)));
  } else if (!checks.summary.passed()) {
    answer.grade = Grade::kUnknown;
  }
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
                      ", started ", EscapeControlCharacters(report.info->started()), DescribeStarts(report),
                      ", optim_test_tools ", EscapeControlCharacters(report.info->version()));
}

std::vector<Answer> Answers(const RunReport& report) {
  Answer reference =
      WhatDiverged("Is it the reference run?", "reference", report.reference,
                   "Not checked while it ran; `ott compare REFERENCE RUN` compares the dumps of both.");
  if (const std::string trend = report.error_trend.ToString(); !trend.empty()) {
    absl::StrAppend(&reference.text, "\n", WithoutNewline(trend));
  }
  return {WhoIsSlow(report), WhatWouldBeSaved(report),
          WhatDiverged("Do the replicas agree?", "replicas", report.replicas,
                       "Not checked while it ran; `ott crosscheck RUN` checks its dumps."),
          std::move(reference)};
}

std::string ToText(const RunReport& report) {
  std::string text = absl::StrCat(report.run_dir, ": ", DescribeRun(report), "\n\n");
  for (const Answer& answer : Answers(report)) {
    absl::StrAppend(&text, answer.question, "\n  ", absl::StrReplaceAll(answer.text, {{"\n", "\n  "}}), "\n");
  }
  for (const std::string& problem : report.problems) absl::StrAppend(&text, "INCOMPLETE: ", problem, "\n");
  if (report.stats) absl::StrAppend(&text, "\n", FormatClusterTable(*report.stats));
  return text;
}

}  // namespace ott::report
