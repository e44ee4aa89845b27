#include "tools/report/run_document.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/dist/check/verdict.h"
#include "tools/report/answers.h"
#include "tools/report/comparison_document.h"
#include "tools/report/display_text.h"
#include "tools/report/rank_grid.h"
#include "tools/report/sampled_timeline.h"

namespace ott::report {
namespace {

constexpr size_t kMaxChecks = 400;
constexpr size_t kMaxTensors = 12;
constexpr size_t kMaxErrorColumns = 200;
constexpr int kMaxCollectives = 50;
constexpr int kMaxParts = 32;
constexpr int kMaxHangRanks = 256;
constexpr int kMaxListedRanks = 16;

// Many numbers: microseconds with four significant digits, null where nothing is known.
constexpr double kShadeUnit = 1e-6;

Json Shades(const std::vector<double>& seconds) {
  Json shades = Json::array();
  for (const double value : seconds) shades.push_back(Rounded(value / kShadeUnit, 4));
  return shades;
}

// Ranks that answers name.
std::vector<int> NamedRanks(const RunReport& report) {
  std::set<int> ranks;
  if (report.stats) {
    if (report.stats->has_straggler()) ranks.insert(report.stats->straggler().rank());
    for (const SlowMeasurement& slow : report.stats->slow_measurements()) ranks.insert(slow.rank());
    for (const ArrivalStats& arrivals : report.stats->arrivals()) {
      if (arrivals.has_hold_up()) ranks.insert(arrivals.hold_up().rank());
    }
  }
  if (report.what_if.ok())
    ranks.insert(report.what_if->blamed_ranks().begin(), report.what_if->blamed_ranks().end());
  return {ranks.begin(), ranks.end()};
}

void AddWhatGridLeavesOut(const RankGrid& grid, std::vector<std::string>* thinned) {
  const size_t num_ranks = static_cast<size_t>(grid.rows.back().last_rank) + 1;
  if (num_ranks > grid.rows.size()) {
    thinned->push_back(absl::StrFormat(
        "%d ranks share %d rows of the heat map: a row shows the longest mean of a rank in it", num_ranks,
        grid.rows.size()));
  }
  if (grid.num_iterations > static_cast<int64_t>(grid.columns.size())) {
    thinned->push_back(absl::StrFormat("%d iterations share %d columns, which show means",
                                       grid.num_iterations, grid.columns.size()));
  }
  if (grid.stride > 1) {
    thinned->push_back(absl::StrFormat("the ranks kept the times of every %dth iteration", grid.stride));
  }
  if (grid.num_outliers > static_cast<int64_t>(grid.outliers.size())) {
    thinned->push_back(
        absl::StrFormat("of %d outliers the %d longest are listed", grid.num_outliers, grid.outliers.size()));
  }
  if (grid.num_scopes_left_out > 0) {
    thinned->push_back(
        absl::StrCat(grid.num_scopes_left_out, " shorter measurements are left out of the tree"));
  }
}

void AddGrid(const RankGrid& grid, const std::vector<int>& named, Document* document) {
  Json columns = Json::array();
  for (const RankGrid::Column& column : grid.columns) {
    columns.push_back({{"first", column.first_iteration},
                       {"last", column.last_iteration},
                       {"shortest", Rounded(column.shortest)},
                       {"mean", Rounded(column.mean)},
                       {"longest", Rounded(column.longest)}});
  }
  Json outliers = Json::array();
  for (const RankGrid::Outlier& outlier : grid.outliers) {
    outliers.push_back({{"iteration", outlier.iteration},
                        {"seconds", Rounded(outlier.seconds)},
                        {"rank", outlier.rank},
                        {"work_seconds", Rounded(outlier.work_seconds)}});
  }
  document->pictures["iterations"] = {{"columns", columns},
                                      {"outlier_limit", Rounded(grid.outlier_limit)},
                                      {"num_outliers", grid.num_outliers},
                                      {"outliers", std::move(outliers)}};
  Json rows = Json::array();
  for (const RankGrid::Row& row : grid.rows) {
    rows.push_back({{"first", row.first_rank}, {"last", row.last_rank}, {"host", DisplayName(row.host)}});
  }
  document->pictures["heat_map"] = {
      {"named", named},     {"rows", std::move(rows)},   {"columns", std::move(columns)},
      {"unit", kShadeUnit}, {"work", Shades(grid.work)}, {"waiting", Shades(grid.waiting)}};
  Json scopes = Json::array();
  for (const RankGrid::Scope& scope : grid.scopes) {
    scopes.push_back({{"name", DisplayName(scope.name)},
                      {"parent", scope.parent},
                      {"collective", scope.collective},
                      {"ranks", scope.num_ranks},
                      {"seconds", Rounded(scope.seconds)},
                      {"own_seconds", Rounded(scope.own_seconds)},
                      {"per_iteration", Rounded(scope.per_iteration)},
                      {"longest", Rounded(scope.longest)},
                      {"longest_rank", scope.longest_rank},
                      {"rows", Shades(scope.rows)}});
  }
  if (!scopes.empty()) {
    double seconds = 0;
    int64_t count = 0;
    for (const RankGrid::Column& column : grid.columns) {
      if (std::isnan(column.mean)) continue;
      seconds += column.mean;
      ++count;
    }
    document->pictures["time_tree"] = {
        {"iteration_seconds", Rounded(count > 0 ? seconds / static_cast<double>(count) : 0)},
        {"unit", kShadeUnit},
        {"scopes", std::move(scopes)}};
  }
  AddWhatGridLeavesOut(grid, &document->thinned);
}

Json OfRank(int rank, const std::string& host) { return {{"rank", rank}, {"host", DisplayName(host)}}; }

void AddArrivals(const ClusterStats& stats, Document* document) {
  if (stats.arrivals().empty()) return;
  Json collectives = Json::array();
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    if (static_cast<int>(collectives.size()) == kMaxCollectives) break;
    Json last = Json::array();
    for (const LastArrival& of_rank : arrivals.last()) {
      Json entry = OfRank(of_rank.rank(), of_rank.host());
      entry["intervals"] = of_rank.num_intervals();
      entry["after_next"] = Rounded(of_rank.after_next());
      entry["mean_wait_of_others"] = Rounded(of_rank.mean_wait_of_others());
      last.push_back(std::move(entry));
    }
    Json hiccups = Json::array();
    for (const Hiccups& of_rank : arrivals.hiccups()) {
      Json entry = OfRank(of_rank.rank(), of_rank.host());
      entry["seconds"] = Rounded(of_rank.seconds());
      entry["count"] = of_rank.num_hiccups();
      entry["iterations"] = std::vector<int64_t>(of_rank.iterations().begin(), of_rank.iterations().end());
      entry["is_pause"] = of_rank.is_pause();
      hiccups.push_back(std::move(entry));
    }
    Json hold_up;
    if (arrivals.has_hold_up()) {
      hold_up = OfRank(arrivals.hold_up().rank(), arrivals.hold_up().host());
      hold_up["seconds_per_iteration"] = Rounded(arrivals.hold_up().seconds_per_iteration());
      hold_up["low"] = Rounded(arrivals.hold_up().seconds_low());
      hold_up["high"] = Rounded(arrivals.hold_up().seconds_high());
      hold_up["share"] = Rounded(arrivals.hold_up().share_of_iteration());
    }
    collectives.push_back({{"name", DisplayName(arrivals.name())},
                           {"group", DisplayName(arrivals.group())},
                           {"ranks", arrivals.num_ranks()},
                           {"intervals", arrivals.num_intervals()},
                           {"incomplete", arrivals.num_incomplete()},
                           {"first", arrivals.first_iteration()},
                           {"last", arrivals.last_iteration()},
                           {"mean_wait", Rounded(arrivals.mean_wait())},
                           {"max_wait", Rounded(arrivals.max_wait())},
                           {"error_bound", Rounded(arrivals.error_bound())},
                           {"last_ranks", std::move(last)},
                           {"hold_up", std::move(hold_up)},
                           {"hiccups", std::move(hiccups)}});
  }
  document->pictures["arrivals"] = {{"collectives", std::move(collectives)}};
  if (stats.arrivals_size() > kMaxCollectives) {
    document->thinned.push_back(absl::StrCat("arrivals at ", kMaxCollectives, " of ", stats.arrivals_size(),
                                             " collectives are shown"));
  }
}

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

// Of many checks, a column stands for the worst of several.
Json DrawChecks(const std::string& subject, const crosscheck::CheckHistory& checks, Document* document) {
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

void AddChecks(const RunReport& report, Document* document) {
  Json series = Json::array();
  for (const auto& [subject, checks] : crosscheck::NamedHistories(report.checks)) {
    if (checks->verdicts.empty()) continue;
    series.push_back({{"subject", subject}, {"checks", DrawChecks(subject, *checks, document)}});
  }
  if (!series.empty()) document->pictures["checks"] = {{"series", std::move(series)}};

  if (report.checks.error_trend.num_tensors() == 0) return;
  const std::vector<int64_t> iterations = report.checks.error_trend.Iterations(kMaxErrorColumns);
  Json tensors = Json::array();
  for (const crosscheck::ErrorTrend::Trend& trend :
       report.checks.error_trend.Trends(iterations, kMaxTensors)) {
    Json errors = Json::array();
    for (const double error : trend.max_abs_error) errors.push_back(Rounded(error));
    tensors.push_back({{"name", DisplayName(trend.tensor)},
                       {"first", trend.first_iteration},
                       {"max_abs_error", std::move(errors)}});
  }
  document->pictures["errors"] = {{"iterations", iterations}, {"tensors", std::move(tensors)}};
  if (report.checks.error_trend.num_tensors() > kMaxTensors) {
    document->thinned.push_back(absl::StrCat("errors of the first ", kMaxTensors, " of ",
                                             report.checks.error_trend.num_tensors(),
                                             " tensors that differ are drawn"));
  }
}

Json Parts(const google::protobuf::RepeatedPtrField<WhatIfPart>& parts) {
  Json array = Json::array();
  for (const WhatIfPart& part : parts) {
    if (static_cast<int>(array.size()) == kMaxParts) break;
    array.push_back({{"name", DisplayName(part.name())},
                     {"seconds", Rounded(part.seconds())},
                     {"saved", Rounded(part.saved())},
                     {"low", Rounded(part.saved_low())},
                     {"high", Rounded(part.saved_high())},
                     {"slowdown", part.has_slowdown() ? Json(Rounded(part.slowdown())) : Json()}});
  }
  return array;
}

void AddWhatIf(const WhatIfAnswer& answer, Document* document) {
  if (answer.verdict() == WHAT_IF_CANNOT_TELL) return;
  google::protobuf::RepeatedPtrField<WhatIfPart> more;
  if (answer.has_best_repairs_together()) *more.Add() = answer.best_repairs_together();
  if (answer.has_communication_overlapped()) *more.Add() = answer.communication_overlapped();
  document->pictures["what_if"] = {{"step_word", DisplayName(answer.step_word())},
                                   {"measured_seconds", Rounded(answer.measured_seconds())},
                                   {"ideal_seconds", Rounded(answer.ideal_seconds())},
                                   {"replay_error", Rounded(answer.replay_error())},
                                   {"repairs", Parts(answer.repairs())},
                                   {"together", Parts(more)},
                                   {"by_rank", Parts(answer.by_rank())},
                                   {"by_operation", Parts(answer.by_operation())}};
}

void AddHang(const HangVerdict& hang, Document* document) {
  Json ranks = Json::array();
  for (const HangRank& rank : hang.ranks()) {
    if (static_cast<int>(ranks.size()) == kMaxHangRanks) break;
    Json entry = OfRank(rank.rank(), rank.host());
    entry["state"] = DisplayName(rank.state());
    entry["iteration"] = rank.iteration();
    entry["last_completed"] = DisplayName(rank.last_completed());
    entry["place"] = DisplayName(rank.place());
    entry["seconds"] = Rounded(rank.seconds());
    entry["blamed"] =
        std::find(hang.culprits().begin(), hang.culprits().end(), rank.rank()) != hang.culprits().end();
    ranks.push_back(std::move(entry));
  }
  document->pictures["hang"] = {{"ranks", std::move(ranks)}};
  if (hang.ranks_size() > kMaxHangRanks) {
    document->thinned.push_back(
        absl::StrCat("where ", kMaxHangRanks, " of ", hang.ranks_size(), " ranks stand is shown"));
  }
}

// The operation that made it, what reads its output, and the whole log around it.
Json DrawOrigin(const OriginVerdict& origin) {
  Json spread = Json::array();
  for (const OriginSpread& step : origin.spread()) {
    spread.push_back({{"iteration", step.iteration()},
                      {"operation", DisplayName(step.operation())},
                      {"module", DisplayName(step.module())},
                      {"parent", step.parent()},
                      {"depth", step.depth()},
                      {"input_difference", Rounded(step.input_difference())},
                      {"difference", Rounded(step.relative_difference())}});
  }
  Json differences = Json::array();
  for (const double difference : origin.differences()) differences.push_back(Rounded(difference, 3));
  return {{"reference", DisplayName(origin.reference())},
          {"perturbed", DisplayName(origin.perturbed())},
          {"kind", OriginVerdict::Kind_Name(origin.kind())},
          {"iteration", origin.iteration()},
          {"ranks", FirstRanks(origin.ranks())},
          {"num_ranks", origin.ranks_size()},
          {"world_size", origin.world_size()},
          {"operation", DisplayName(origin.operation())},
          {"module", DisplayName(origin.module())},
          {"source", DisplayName(origin.source())},
          {"tensor", DisplayName(origin.tensor())},
          {"input_difference", Rounded(origin.input_difference())},
          {"difference", Rounded(origin.relative_difference())},
          {"explained", Rounded(origin.explained())},
          {"estimated", origin.estimated()},
          {"num_differ_after", origin.num_differ_after()},
          {"num_swallow_after", origin.num_swallow_after()},
          {"spread", std::move(spread)},
          {"log", std::move(differences)},
          {"origin_part", origin.origin_part()}};
}

}  // namespace

Document MakeDocument(const RunReport& report) {
  Document document;
  document.title = report.run_dir;
  document.subject = DescribeRun(report);
  document.answers = Answers(report);
  document.problems = report.problems;
  document.details = DetailsOf(report);
  return document;
}

void AddPictures(const RunReport& report, Document* document) {
  if (report.stats) {
    const int world_size = std::max(report.stats->world_size(), 1);
    if (const auto grid = ReadRankGrid(report.run_dir, world_size, report.start_iteration()); grid.ok()) {
      AddGrid(*grid, NamedRanks(report), document);
    }
    AddArrivals(*report.stats, document);
  }
  if (report.what_if.ok()) AddWhatIf(*report.what_if, document);
  if (report.hang) AddHang(*report.hang, document);
  AddChecks(report, document);
  if (report.origin && report.origin->ok() && (*report.origin)->differences_size() > 0) {
    document->pictures["origin"] = DrawOrigin(**report.origin);
  }
  if (report.comparison) {
    document->pictures["comparison"] = DrawComparison(*report.comparison, kBeforeAndAfter);
  }
  if (const auto timeline = ReadSampledTimeline(report.run_dir, NamedRanks(report)); timeline.ok()) {
    AddTimeline(*timeline, "iteration", document);
  }
  RemoveLinksToNothing(document);
}

}  // namespace ott::report
