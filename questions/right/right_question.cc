#include "ott/questions/right/right_question.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/right/calibrate/calibrate_command.h"
#include "ott/questions/right/compare/compare_answer.h"
#include "ott/questions/right/compare/compare_command.h"
#include "ott/questions/right/compare/compare_runs.h"
#include "ott/questions/right/compare/runs_report.h"
#include "ott/questions/right/crosscheck/check_history.h"
#include "ott/questions/right/crosscheck/crosscheck_command.h"
#include "ott/questions/right/show/show_command.h"

namespace ott::crosscheck {
namespace {

constexpr size_t kMaxChecks = 400;
constexpr size_t kMaxTensors = 12;
constexpr size_t kMaxErrorColumns = 200;
constexpr int kMaxListedRanks = 16;

const char* NameOf(Outcome outcome, bool is_distinct) {
  switch (outcome) {
    case BITWISE_EQUAL:
      return "equal";
    case WITHIN_TOLERANCE:
      return "within_tolerance";
    case DIFFERENT:
      return is_distinct ? "same" : "different";
    case ALL_DISTINCT:
      return "distinct";
    default:
      return "not_compared";
  }
}

std::vector<int> FirstRanks(const google::protobuf::RepeatedField<int32_t>& ranks) {
  return {ranks.begin(), ranks.begin() + std::min(ranks.size(), kMaxListedRanks)};
}

// Ranks that a verdict names: culprits, or those on which the first tensor differs.
std::vector<int> RanksOf(const CrossCheckVerdict& verdict) {
  if (OutcomeOfAllRanks(verdict) != DIFFERENT) return {};
  if (verdict.mode() != REFERENCE) return FirstRanks(verdict.culprit_ranks());
  if (verdict.first_ranks().empty()) return {verdict.rank()};
  return FirstRanks(verdict.first_ranks());
}

// If there are many checks, a column stands for the worst of several.
Json DrawChecks(const std::string& subject, const CheckHistory& checks, Document* document) {
  const size_t num_checks = checks.verdicts.size();
  const size_t num_columns = std::min(num_checks, kMaxChecks);
  Json columns = Json::array();
  for (size_t column = 0; column < num_columns; ++column) {
    const size_t begin = column * num_checks / num_columns;
    const size_t end = (column + 1) * num_checks / num_columns;
    const auto worst = std::max_element(
        checks.verdicts.begin() + begin, checks.verdicts.begin() + end, [](const auto& a, const auto& b) {
          return SeverityOf(OutcomeOfAllRanks(a)) < SeverityOf(OutcomeOfAllRanks(b));
        });
    const Outcome outcome = OutcomeOfAllRanks(*worst);
    columns.push_back(
        {{"first", checks.verdicts[begin].iteration()},
         {"last", checks.verdicts[end - 1].iteration()},
         {"outcome", NameOf(outcome, checks.summary.is_distinct)},
         {"tensor", DisplayName(worst->first_tensor().empty() ? worst->tensor() : worst->first_tensor())},
         {"different_tensors", worst->num_different_tensors()},
         {"ranks", RanksOf(*worst)},
         {"reason", DisplayName(worst->reason())}});
  }
  if (num_checks > num_columns) {
    document->thinned.push_back(absl::StrCat(num_checks, " checks (", subject, ") share ", num_columns,
                                             " columns, which show the worst"));
  }
  return columns;
}

void AddChecks(const CheckHistories& histories, Document* document) {
  Json series = Json::array();
  for (const auto& [subject, checks] : NamedHistories(histories)) {
    if (checks->verdicts.empty()) continue;
    series.push_back({{"subject", subject}, {"checks", DrawChecks(subject, *checks, document)}});
  }
  if (!series.empty()) document->pictures["checks"] = {{"series", std::move(series)}};

  if (histories.error_trend.num_tensors() == 0) return;
  const std::vector<int64_t> iterations = histories.error_trend.Iterations(kMaxErrorColumns);
  Json tensors = Json::array();
  for (const ErrorTrend::Trend& trend : histories.error_trend.Trends(iterations, kMaxTensors)) {
    Json errors = Json::array();
    for (const double error : trend.max_abs_error) errors.push_back(Rounded(error));
    tensors.push_back({{"name", DisplayName(trend.tensor)},
                       {"first", trend.first_iteration},
                       {"max_abs_error", std::move(errors)}});
  }
  document->pictures["errors"] = {{"iterations", iterations}, {"tensors", std::move(tensors)}};
  if (histories.error_trend.num_tensors() > kMaxTensors) {
    document->thinned.push_back(absl::StrCat("errors of the first ", kMaxTensors, " of ",
                                             histories.error_trend.num_tensors(),
                                             " tensors that differ are drawn"));
  }
}

Metric ChecksMetric(const CheckHistories& histories) {
  Metric metric = {"ott_checks", "Cross-checks of tensors by outcome of the worst rank.", {}};
  for (const auto& [subject, checks] : NamedHistories(histories)) {
    if (checks->verdicts.empty()) continue;
    const VerdictSummary& summary = checks->summary;
    const auto add = [&, of = subject](const char* outcome, int64_t count) {
      metric.samples.push_back({static_cast<double>(count), {{"subject", of}, {"outcome", outcome}}});
    };
    add("equal", summary.num_bitwise_equal);
    add("within_tolerance", summary.num_within_tolerance);
    add(summary.is_distinct ? "same" : "different", summary.num_different);
    add("not_compared", summary.num_not_compared);
    if (summary.is_distinct) add("distinct", summary.num_distinct);
  }
  return metric;
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  OTT_ASSIGN_OR_RETURN(CheckHistories histories, ReadCheckHistories(run.run_dir, run.ranks, run.info));
  Findings findings;
  findings.problems = histories.problems;
  findings.answers = {AnswerReplicas(histories), AnswerReference(histories)};
  const bool compares_dumps = findings.answers[1].finding() == Answer::NOT_ASKED && !run.reference.empty() &&
                              HasDumps(run.reference) && HasDumps(run.run_dir);
  if (compares_dumps) {
    OTT_ASSIGN_OR_RETURN(const compare::RunsComparison comparison,
                         compare::CompareRuns(run.reference, run.run_dir));
    findings.answers[1] = compare::AnswerCompare(comparison);
    if (findings.answers[1].finding() == Answer::BAD)
      AddNext({"compare", run.reference, run.run_dir}, &findings.answers[1]);
    findings.details = {{"Dumps beside the reference's", compare::ToText(comparison)}};
  }
  if (findings.answers[0].finding() == Answer::BAD)
    AddNext({"crosscheck", run.run_dir}, &findings.answers[0]);
  if (!compares_dumps && findings.answers[1].finding() == Answer::BAD && run.info) {
    AddNext({run.info->config().has_op_log() ? "origin" : "compare",
             run.info->config().cross_check().reference_run(), run.run_dir},
            &findings.answers[1]);
  }
  if (!histories.distinct.verdicts.empty()) findings.answers.push_back(AnswerDistinct(histories));
  if (const std::string trend = histories.error_trend.ToString(); !trend.empty()) {
    findings.details.push_back({"Errors against the reference", trend});
  }
  findings.metrics = {ChecksMetric(histories)};
  findings.is_news = std::any_of(findings.answers.begin(), findings.answers.end(),
                                 [](const Answer& answer) { return answer.finding() != Answer::NOT_ASKED; });
  findings.draw = [histories = std::move(histories)](const std::vector<int>&, Document* document) {
    AddChecks(histories, document);
  };
  return findings;
}

void AddCommands(const CommandLine& line) {
  compare::AddCompareCommand(line);
  AddCrosscheckCommand(line);
  calibrate::AddCalibrateCommand(line);
  show::AddShowCommand(line);
}

}  // namespace

Question RightQuestion() { return {"Is it still right?", AddCommands, Ask, /*is_about_tensors=*/true}; }

}  // namespace ott::crosscheck
