#include "tools/report/prometheus.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "ott/core/base/utf8.h"
#include "ott/questions/origin/origin_answer.h"

namespace ott::report {
namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

class Exposition {
 public:
  explicit Exposition(const std::string& run_dir) : run_dir_(run_dir) {}

  // Once a name, before its samples.
  void Describe(const char* name, const char* help) {
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " gauge\n");
  }

  void Add(const char* name, double value, const Labels& labels = {}) {
    absl::StrAppend(&text_, name, "{run=\"", Escape(run_dir_), "\"");
    for (const auto& [key, label] : labels) absl::StrAppend(&text_, ",", key, "=\"", Escape(label), "\"");
    absl::StrAppendFormat(&text_, "} %.10g\n", value);
  }

  std::string Finish() { return std::move(text_); }

 private:
  static std::string Escape(std::string_view label) {
    return absl::StrReplaceAll(ValidUtf8(label), {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
  }

  const std::string run_dir_;
  std::string text_;
};

void AddChecks(const RunReport& report, Exposition* exposition) {
  exposition->Describe("ott_checks", "Cross-checks of tensors by outcome of the worst rank.");
  for (const auto& [subject, checks] : crosscheck::NamedHistories(report.checks)) {
    if (checks->verdicts.empty()) continue;
    const VerdictSummary& summary = checks->summary;
    exposition->Add("ott_checks", static_cast<double>(summary.num_bitwise_equal),
                    {{"subject", subject}, {"outcome", "equal"}});
    exposition->Add("ott_checks", static_cast<double>(summary.num_within_tolerance),
                    {{"subject", subject}, {"outcome", "within_tolerance"}});
    exposition->Add("ott_checks", static_cast<double>(summary.num_different),
                    {{"subject", subject}, {"outcome", summary.is_distinct ? "same" : "different"}});
    exposition->Add("ott_checks", static_cast<double>(summary.num_not_compared),
                    {{"subject", subject}, {"outcome", "not_compared"}});
    if (!summary.is_distinct) continue;
    exposition->Add("ott_checks", static_cast<double>(summary.num_distinct),
                    {{"subject", subject}, {"outcome", "distinct"}});
  }
}

bool Diverged(const Document& document) {
  const std::set<std::string> comparisons = {crosscheck::kReplicasQuestion.id,
                                             crosscheck::kReferenceQuestion.id,
                                             crosscheck::kDistinctQuestion.id, origin::kQuestion.id};
  return std::any_of(document.answers.begin(), document.answers.end(), [&](const Answer& answer) {
    return answer.finding() == Answer::BAD && comparisons.count(answer.question()) > 0;
  });
}

}  // namespace

std::string ToPrometheus(const RunReport& report, const Document& document) {
  Exposition exposition(report.run_dir);
  exposition.Describe("ott_complete", "1 if everything that was to be measured and compared was.");
  const bool is_complete =
      document.problems.empty() &&
      std::none_of(document.answers.begin(), document.answers.end(),
                   [](const Answer& answer) { return answer.finding() == Answer::CANNOT_TELL; });
  exposition.Add("ott_complete", is_complete ? 1 : 0);
  exposition.Describe("ott_diverged", "1 if replicas, or this run and its reference, differ.");
  exposition.Add("ott_diverged", Diverged(document) ? 1 : 0);
  exposition.Describe("ott_answer", "1 for what each question found: good, bad, cannot_tell or not_asked.");
  for (const Answer& answer : document.answers) {
    exposition.Add("ott_answer", 1,
                   {{"question", answer.question()},
                    {"finding", absl::AsciiStrToLower(Answer::Finding_Name(answer.finding()))}});
  }
  AddChecks(report, &exposition);
  if (report.hang && report.hang->answer() != HangVerdict::CANNOT_TELL) {
    exposition.Describe("ott_hanging", "1 if the job stands still.");
    exposition.Add("ott_hanging", report.hang->answer() == HangVerdict::HANGING ? 1 : 0);
  }
  if (report.gather_age) {
    exposition.Describe("ott_gather_age_seconds", "Since rank 0 last gathered the statistics of all ranks.");
    exposition.Add("ott_gather_age_seconds", std::max(0.0, *report.gather_age));
  }
  if (!report.stats) return exposition.Finish();
  const ClusterStats& stats = *report.stats;
  exposition.Describe("ott_ranks_missing", "Ranks without statistics.");
  exposition.Add("ott_ranks_missing", stats.missing_ranks_size());
  exposition.Describe("ott_iterations_measured", "Of the rank with the most.");
  exposition.Add("ott_iterations_measured", static_cast<double>(stats.max_measured_iters()));
  exposition.Describe("ott_iteration_seconds", "Mean over ranks and iterations.");
  exposition.Add("ott_iteration_seconds", stats.iteration().mean());
  exposition.Describe(
      "ott_slowest_rank_excess_ratio",
      "Work of the rank that stands out, over the others' median, minus 1; 0 where none stands out.");
  if (stats.has_straggler()) {
    exposition.Add("ott_slowest_rank_excess_ratio", stats.straggler().slower_by(),
                   {{"rank", absl::StrCat(stats.straggler().rank())}, {"host", stats.straggler().host()}});
  } else if (stats.missing_ranks().empty() && (stats.has_detectable() || stats.num_ranks() == 1)) {
    exposition.Add("ott_slowest_rank_excess_ratio", 0, {{"rank", ""}, {"host", ""}});
  }
  exposition.Describe("ott_waiting_for_rank_seconds",
                      "Of an iteration, that all wait for this rank at this collective.");
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    if (!arrivals.has_hold_up()) continue;
    exposition.Add("ott_waiting_for_rank_seconds", arrivals.hold_up().seconds_per_iteration(),
                   {{"rank", absl::StrCat(arrivals.hold_up().rank())},
                    {"host", arrivals.hold_up().host()},
                    {"collective", arrivals.name()},
                    {"group", arrivals.group()}});
  }
  return exposition.Finish();
}

}  // namespace ott::report
