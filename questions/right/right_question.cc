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
#include "ott/questions/answer/picture.h"
#include "ott/questions/right/calibrate/calibrate_command.h"
#include "ott/questions/right/checks_picture.pb.h"
#include "ott/questions/right/compare/checkpoint_pair.h"
#include "ott/questions/right/compare/compare_answer.h"
#include "ott/questions/right/compare/compare_command.h"
#include "ott/questions/right/compare/compare_runs.h"
#include "ott/questions/right/compare/dump_piece.h"
#include "ott/questions/right/compare/runs_report.h"
#include "ott/questions/right/crosscheck/check_history.h"
#include "ott/questions/right/crosscheck/check_reference.h"
#include "ott/questions/right/crosscheck/crosscheck_command.h"
#include "ott/questions/right/show/show_command.h"

namespace ott::crosscheck {
namespace {

constexpr size_t kMaxChecks = 400;
constexpr size_t kMaxTensors = 12;
constexpr size_t kMaxErrorColumns = 200;
constexpr int kMaxListedRanks = 16;

// Ranks that a verdict names: culprits, or those on which the first tensor differs.
google::protobuf::RepeatedField<int32_t> RanksOf(const CrossCheckVerdict& verdict) {
  google::protobuf::RepeatedField<int32_t> ranks;
  if (OutcomeOfAllRanks(verdict) != DIFFERENT) return ranks;
  ranks = verdict.mode() == REFERENCE ? verdict.first_ranks() : verdict.culprit_ranks();
  if (verdict.mode() == REFERENCE && ranks.empty()) ranks.Add(verdict.rank());
  ranks.Truncate(std::min(ranks.size(), kMaxListedRanks));
  return ranks;
}

// If there are many checks, each that is drawn is the worst of several.
void DrawChecks(const CheckHistory& checks, ChecksPicture::Series* series, Document* document) {
  const size_t num_checks = checks.verdicts.size();
  const size_t num_drawn = std::min(num_checks, kMaxChecks);
  for (size_t i = 0; i < num_drawn; ++i) {
    const size_t begin = i * num_checks / num_drawn;
    const size_t end = (i + 1) * num_checks / num_drawn;
    const auto worst = std::max_element(
        checks.verdicts.begin() + begin, checks.verdicts.begin() + end, [](const auto& a, const auto& b) {
          return SeverityOf(OutcomeOfAllRanks(a)) < SeverityOf(OutcomeOfAllRanks(b));
        });
    ChecksPicture::Check& check = *series->add_checks();
    check.set_first(checks.verdicts[begin].iteration());
    check.set_last(checks.verdicts[end - 1].iteration());
    check.set_outcome(OutcomeOfAllRanks(*worst));
    check.set_tensor(worst->first_tensor().empty() ? worst->tensor() : worst->first_tensor());
    check.set_different_tensors(worst->num_different_tensors());
    *check.mutable_ranks() = RanksOf(*worst);
    check.set_reason(worst->reason());
  }
  if (num_checks > num_drawn) {
    document->thinned.push_back(absl::StrCat(num_checks, " checks (", series->subject(), ") share ",
                                             num_drawn, " columns, which show the worst"));
  }
}

void AddChecks(const CheckHistories& histories, Document* document) {
  ChecksPicture checks;
  for (const auto& [subject, history] : NamedHistories(histories)) {
    if (history->verdicts.empty()) continue;
    ChecksPicture::Series& series = *checks.add_series();
    series.set_subject(subject);
    DrawChecks(*history, &series, document);
  }
  if (!checks.series().empty()) document->pictures["checks"] = DrawMessage(checks);

  if (histories.error_trend.num_tensors() == 0) return;
  const std::vector<int64_t> iterations = histories.error_trend.Iterations(kMaxErrorColumns);
  ErrorsPicture errors;
  *errors.mutable_iterations() = {iterations.begin(), iterations.end()};
  for (const ErrorTrend::Trend& trend : histories.error_trend.Trends(iterations, kMaxTensors)) {
    ErrorsPicture::Tensor& tensor = *errors.add_tensors();
    tensor.set_name(trend.tensor);
    tensor.set_first(trend.first_iteration);
    *tensor.mutable_max_abs_error() = {trend.max_abs_error.begin(), trend.max_abs_error.end()};
  }
  document->pictures["errors"] = DrawMessage(errors);
  if (histories.error_trend.num_tensors() > kMaxTensors) {
    document->thinned.push_back(absl::StrCat("errors of the first ", kMaxTensors, " of ",
                                             histories.error_trend.num_tensors(),
                                             " tensors that differ are drawn"));
  }
}

Metric ChecksMetric(const CheckHistories& histories) {
  Metric metric = {
      "ott_checks_total", "Cross-checks of tensors by outcome of the worst rank.", {}, /*only_grows=*/true};
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

Question RightQuestion() {
  return {"Is it still right?",
          AddCommands,
          Ask,
          /*is_about_tensors=*/true,
          /*depends_on_time=*/false,
          /*reads=*/{"cross_check"},
          {compare::kCompareDumps, compare::kCompareTensors, kCheckAgainstReference}};
}

}  // namespace ott::crosscheck
