#include "ott/questions/learning/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/group_sequential.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/permuted_maximum.h"
#include "ott/questions/learning/examined_runs.h"
#include "ott/questions/learning/metric_names.h"

namespace ott::learning {
namespace {

using Metric = LearningVerdict::Metric;

constexpr size_t kMostRuns = 10000;
// One run has to stand out by so many times as much as the one of the others that does most: their tails are
// longer than Student's.
constexpr double kOneRunFactor = 3;

struct Sides {
  std::vector<const Curve*> curves;  // of A, then of B
  size_t num_a = 0;

  size_t num_b() const { return curves.size() - num_a; }
};

// By how much each curve ends higher than it began; without those that are never finite.
std::vector<double> ChangesOf(const Sides& sides) {
  std::vector<double> changes;
  for (const Curve* curve : sides.curves) {
    const auto is_finite = [](const Point& point) { return std::isfinite(point.y); };
    const auto first = std::find_if(curve->begin(), curve->end(), is_finite);
    const auto last = std::find_if(curve->rbegin(), curve->rend(), is_finite);
    if (first != curve->end()) changes.push_back(last->y - first->y);
  }
  return changes;
}

// Returns true if at least as many curves fall as rise.
bool MostRunsFall(const Sides& sides) {
  int falls = 0;
  for (const double change : ChangesOf(sides)) falls += (change < 0) - (change > 0);
  return falls >= 0;
}

// Returns true if the curves fall, and nullopt if they do not tell from how they vary.
std::optional<bool> CurvesFall(const Sides& sides) {
  // By chance alone 1 of 40 sets of five does.
  constexpr double kDeviations = 4;
  const std::vector<double> changes = ChangesOf(sides);
  if (changes.empty()) return std::nullopt;
  const double change = Median(changes);
  if (change == 0 || std::abs(change) <= kDeviations * MedianAbsoluteDeviation(changes)) return std::nullopt;
  return change < 0;
}

Sides SidesOf(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b, const std::string& metric) {
  Sides sides;
  sides.num_a = a.size();
  for (const std::vector<RunCurves>* side : {&a, &b}) {
    for (const RunCurves& run : *side) sides.curves.push_back(&run.curves.at(metric));
  }
  return sides;
}

// B less A, where B may be a single run: then its spread is taken to be that of A.
Estimate Difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() > 1 && b.size() > 1) return WelchDifference(a, b);
  Estimate estimate;
  estimate.value = Mean(b) - Mean(a);
  const std::vector<double>& known = a.size() > 1 ? a : b;
  estimate.degrees_of_freedom = static_cast<double>(known.size() - 1);
  double squares = 0;
  for (const double value : known) squares += (value - Mean(known)) * (value - Mean(known));
  estimate.standard_error =
      std::sqrt(squares / estimate.degrees_of_freedom *
                (1 / static_cast<double>(a.size()) + 1 / static_cast<double>(b.size())));
  return estimate;
}

LearningVerdict::Interval ToInterval(double value, const Interval& interval) {
  LearningVerdict::Interval message;
  message.set_value(value);
  message.set_low(interval.low);
  message.set_high(interval.high);
  return message;
}

LearningVerdict::Interval RangeOf(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return ToInterval(Mean(values), {*low, *high});
}

// The column of a row-major table, of the runs from `first` to `last`.
std::vector<double> ColumnOf(const std::vector<double>& table, size_t num_columns, size_t column,
                             size_t first, size_t last) {
  std::vector<double> values;
  for (size_t run = first; run < last; ++run) values.push_back(table[run * num_columns + column]);
  return values;
}

// One metric at the points that all runs have.
struct Judged {
  CommonPoints points;
  RunScores scores;
  std::vector<Estimate> differences;  // by point
  std::vector<double> margins;        // by point
  // Scores that a score has to exceed at its share of the level.
  std::vector<double> scales;
};

Judged Prepare(const Sides& sides, CommonPoints points, double level, const LearningOptions& options) {
  Judged judged;
  judged.points = std::move(points);
  const size_t num_points = judged.points.x.size(), num_runs = sides.curves.size();
  const bool is_one_run = std::min(sides.num_a, sides.num_b()) == 1;
  // A single run does not show how evaluations round where it stops.
  const std::vector<double> stops =
      is_one_run ? std::vector<double>() : StopsAtTarget(sides.curves, judged.points.lower_is_better);
  judged.scores = ScoreRuns(judged.points, stops, /*has_outliers=*/!is_one_run);
  const double freedom = static_cast<double>(num_runs - 2);
  for (const Score& score : judged.scores.scores) {
    judged.scales.push_back(StudentTQuantile(1 - level * score.share / 2, freedom));
  }
  for (size_t point = 0; point < num_points; ++point) {
    const std::vector<double> a = ColumnOf(judged.points.y, num_points, point, 0, sides.num_a);
    judged.differences.push_back(
        Difference(a, ColumnOf(judged.points.y, num_points, point, sides.num_a, num_runs)));
    const LearningVerdict::Interval span = RangeOf(DrawIn(a, kMostDeviations));
    judged.margins.push_back(options.margin.value_or((span.high() - span.low()) / 2));
  }
  return judged;
}

// The factor of standard errors that a band of all points needs.
double BandFactor(const Judged& judged, const Sides& sides, double level) {
  const size_t num_points = judged.points.x.size(), num_runs = sides.curves.size();
  if (SmallestPermutedPValue(sides.num_a, sides.num_b()) > level) {
    return StudentTQuantile(1 - level / judged.scores.effective_points / 2,
                            static_cast<double>(num_runs - 2));
  }
  std::vector<double> residuals = judged.points.y;
  for (size_t point = 0; point < num_points; ++point) {
    for (const auto& [first, last] : {std::pair(size_t{0}, sides.num_a), {sides.num_a, num_runs}}) {
      const double mean = Mean(ColumnOf(judged.points.y, num_points, point, first, last));
      for (size_t run = first; run < last; ++run) residuals[run * num_points + point] -= mean;
    }
  }
  return PermuteMaximum(residuals, num_runs, sides.num_a, std::vector<double>(num_points, 1), level).critical;
}

// Returns true if at every point a one-sided interval excludes a loss beyond the margin, and one a gain.
bool IsInsideMargins(const Judged& judged, double level) {
  for (size_t point = 0; point < judged.margins.size(); ++point) {
    const Interval interval = judged.differences[point].IntervalAt(2 * level);
    if (!(interval.low >= -judged.margins[point] && interval.high <= judged.margins[point])) return false;
  }
  return true;
}

// Sets the median of B / A at the points.
void SetRatio(Metric* metric) {
  std::vector<double> ratios;
  for (const LearningVerdict::Point& point : metric->points()) {
    if (point.a().value() != 0) ratios.push_back(point.b().value() / point.a().value());
  }
  if (!ratios.empty()) metric->set_ratio(Median(ratios));
}

void AddPoints(const Judged& judged, const Sides& sides, double factor, Metric* metric) {
  const size_t num_points = judged.points.x.size(), num_runs = sides.curves.size();
  for (size_t point = 0; point < num_points; ++point) {
    LearningVerdict::Point* const to = metric->add_points();
    to->set_x(judged.points.x[point]);
    *to->mutable_a() = RangeOf(ColumnOf(judged.points.y, num_points, point, 0, sides.num_a));
    *to->mutable_b() = RangeOf(ColumnOf(judged.points.y, num_points, point, sides.num_a, num_runs));
    const Estimate& difference = judged.differences[point];
    const double half = difference.standard_error > 0 ? factor * difference.standard_error : 0;
    *to->mutable_difference() =
        ToInterval(difference.value, {difference.value - half, difference.value + half});
    to->set_margin(judged.margins[point]);
  }
  SetRatio(metric);
}

// Adds where the band excludes zero on the side that `sign` names.
void AddWhere(double sign, Metric* metric) {
  for (const LearningVerdict::Point& point : metric->points()) {
    if (sign > 0 ? point.difference().low() <= 0 : point.difference().high() >= 0) continue;
    if (!metric->has_differs_from()) metric->set_differs_from(point.x());
    metric->set_differs_to(point.x());
  }
}

// B less A of a score of the runs.
Estimate DifferenceOfScore(const RunScores& scores, size_t score, const Sides& sides) {
  const size_t num_scores = scores.scores.size();
  return Difference(ColumnOf(scores.measured, num_scores, score, 0, sides.num_a),
                    ColumnOf(scores.measured, num_scores, score, sides.num_a, sides.curves.size()));
}

// The share of the steps that B loses by a score, in Student's interval.
LearningVerdict::Interval ShareLost(const Judged& judged, const Sides& sides, size_t score, double level) {
  const double unit = judged.scores.scores[score].per_share_lost;
  const Estimate lost = DifferenceOfScore(judged.scores, score, sides);
  const Interval interval = lost.IntervalAt(level);
  return ToInterval(lost.value / unit, {interval.low / unit, interval.high / unit});
}

// By the score that knows how points vary together, if the one that does not agrees: what is known of it is
// little, and a difference of another form than lost steps misleads it.
void AddShareLost(const Judged& judged, const Sides& sides, double level, Metric* metric) {
  if (!(judged.scores.scores[0].per_share_lost > 0)) return;
  const LearningVerdict::Interval sharp = ShareLost(judged, sides, 0, level);
  const LearningVerdict::Interval robust = ShareLost(judged, sides, 1, level);
  // A curve that lost all its steps, or saved as many, is not the one by which a share is measured.
  if (std::abs(robust.value()) >= 1) return;
  const bool agree = sharp.value() >= robust.low() && sharp.value() <= robust.high();
  *metric->mutable_share_lost() = agree && sides.num_b() > 1 ? sharp : robust;
}

void AddStopRatio(const Judged& judged, const Sides& sides, double level, Metric* metric) {
  for (size_t score = 0; score < judged.scores.scores.size(); ++score) {
    if (judged.scores.scores[score].shape != Shape::kTarget) continue;
    const double a =
        Mean(ColumnOf(judged.scores.measured, judged.scores.scores.size(), score, 0, sides.num_a));
    const Estimate later = DifferenceOfScore(judged.scores, score, sides);
    const Interval interval = later.IntervalAt(level);
    *metric->mutable_stop_ratio() =
        ToInterval(1 + later.value / a, {1 + interval.low / a, 1 + interval.high / a});
  }
}

// Returns what the largest of the scores of `found` has to exceed.
double Threshold(const PermutedMaximum& found, size_t num_a, size_t num_b) {
  return std::min(num_a, num_b) > 1 ? found.critical : std::max(1.0, kOneRunFactor * found.critical);
}

// The sides are known to differ. Scores and points that do not lean on how points vary together tell in which
// direction. If there are none, a form tells that has but one: lost steps, or a part of the curve between
// parts that agree. MIXED if these contradict each other or say nothing.
LearningVerdict::Kind KindOfDifference(const Judged& judged, const Sides& sides, const PermutedMaximum& found,
                                       double band_factor, double level) {
  bool is_worse = false, is_better = false;
  const auto add = [&](double worse) { (worse > 0 ? is_worse : is_better) = true; };
  const auto worse_by = [&](size_t score) { return judged.scores.scores[score].worse * found.t[score]; };
  const double threshold = Threshold(found, sides.num_a, sides.num_b());
  const auto is_found = [&](size_t score) {
    return std::abs(found.t[score]) / judged.scales[score] > threshold;
  };
  const std::vector<Score>& scores = judged.scores.scores;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].plain == i && is_found(i)) add(worse_by(i));
  }
  const double sign = judged.points.lower_is_better ? 1 : -1;
  for (const Estimate& difference : judged.differences) {
    if (std::abs(difference.value) > band_factor * difference.standard_error) add(sign * difference.value);
  }
  // The end is one point, chosen beforehand.
  const Interval end = judged.differences.back().IntervalAt(level);
  if (end.low > 0 || end.high < 0) add(sign * judged.differences.back().value);
  if (!is_worse && !is_better) {
    for (size_t i = 0; i < scores.size(); ++i) {
      const bool has_one_direction = scores[i].shape == Shape::kSteps ||
                                     (scores[i].first > 0 && scores[i].last + 1 < judged.points.x.size());
      if (has_one_direction && is_found(i)) {
        add(worse_by(i));
        add(worse_by(scores[i].plain));
      }
    }
  }
  if (is_worse == is_better) return LearningVerdict::MIXED;
  return is_worse ? LearningVerdict::WORSE : LearningVerdict::BETTER;
}

// Returns true if the whole of a curve is the beginning of another one, to the last bit, which is as long or
// longer. One that stays where it is may well be equal, as a share of a few answers is.
bool IsBeginningOf(const Curve& curve, const Curve& other) {
  const bool is_equal =
      std::equal(curve.begin(), curve.end(), other.begin(), [](const Point& a, const Point& b) {
        return a.x == b.x && (a.y == b.y || (std::isnan(a.y) && std::isnan(b.y)));
      });
  return is_equal && std::any_of(curve.begin(), curve.end(),
                                 [&](const Point& point) { return point.y != curve.front().y; });
}

// Leaves out runs that are others again, as those of one seed are: together they are one sample.
std::vector<RunCurves> WithoutRepeated(const std::vector<RunCurves>& runs, const std::string& metric,
                                       const char* side, LearningVerdict* verdict) {
  std::vector<const Curve*> curves;
  for (const RunCurves& run : runs) curves.push_back(&run.curves.at(metric));
  std::vector<size_t> longest_first(runs.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t one, size_t other) { return curves[one]->size() > curves[other]->size(); });
  std::vector<size_t> kept;
  for (const size_t run : longest_first) {
    const bool is_again = std::any_of(
        kept.begin(), kept.end(), [&](size_t other) { return IsBeginningOf(*curves[run], *curves[other]); });
    if (!is_again) kept.push_back(run);
  }
  std::sort(kept.begin(), kept.end());
  if (const size_t num_again = runs.size() - kept.size(); num_again > 0) {
    verdict->add_notes(absl::StrCat(num_again, num_again == 1 ? " run of " : " runs of ", side,
                                    num_again == 1 ? " is another one" : " are others",
                                    " again, to the last bit, and left out: has each its own seed?"));
  }
  std::vector<RunCurves> distinct;
  for (const size_t run : kept) distinct.push_back(runs[run]);
  return distinct;
}

// So many runs of each side would tell: be as good, or differ, whichever needs fewer; 0: not known.
int64_t RunsNeeded(const Judged& judged, const Sides& sides, const PermutedMaximum& found, double level) {
  const double runs = static_cast<double>(std::min(sides.num_a, sides.num_b()));
  const auto fewest = static_cast<double>(FewestRunsASide(level));
  double as_good = 1;
  for (size_t point = 0; point < judged.margins.size(); ++point) {
    const Estimate& difference = judged.differences[point];
    const double room = judged.margins[point] - std::abs(difference.value);
    const double half = difference.IntervalAt(2 * level).high - difference.value;
    as_good = std::max(as_good, room > 0 ? (half / room) * (half / room) : double{kMostRuns});
  }
  const double critical = std::isfinite(found.critical) ? found.critical : 1;
  const double differ =
      found.value > 0 ? (critical / found.value) * (critical / found.value) : double{kMostRuns};
  const double needed = std::max(std::ceil(runs * std::min(as_good, differ)), std::max(runs + 1, fewest));
  return needed <= kMostRuns ? static_cast<int64_t>(needed) : 0;
}

// If one run is compared with few others, the critical value is that of the runner-up.
double ErrorOfPermutation(size_t num_a, size_t num_b, double level) {
  return std::min(num_a, num_b) == 1 ? std::max(level, 1.5 / static_cast<double>(num_a + num_b)) : level;
}

// value: the largest of some of the scores of `found`.
bool Differs(const PermutedMaximum& found, double value, size_t num_a, size_t num_b) {
  return value > Threshold(found, num_a, num_b);
}

// The least size of a set that one run is held against.
constexpr size_t kFewestRunsOfBand = 5;

// The level of the look that has so many runs a side; 0: none of them could tell.
double LevelOfLook(size_t num_a, size_t num_b, const LearningOptions& options) {
  const size_t runs = std::min(num_a, num_b), others = std::max(num_a, num_b);
  // A band around so few runs is left by chance more often than is promised.
  if (runs == 1 && others > 1 && others < kFewestRunsOfBand) return 0;
  if (options.max_runs == 0) return options.error;
  const size_t most = std::max(options.max_runs, runs);
  std::vector<double> information;
  size_t looks_so_far = 0;
  for (size_t n = 2; n <= most; ++n) {
    const double share = static_cast<double>(n) / static_cast<double>(most);
    if (SmallestPermutedPValue(n, n) > options.error * SpentError(share)) continue;
    information.push_back(share);
    if (n <= runs) ++looks_so_far;
  }
  return looks_so_far > 0 ? GroupSequentialLevels(information, options.error)[looks_so_far - 1] : 0;
}

// Returns true if B is as good by what was stated, or by what the runs of A span.
bool IsAsGood(const Judged& judged, const Sides& sides, const PermutedMaximum& found, bool differs,
              double level, const LearningOptions& options) {
  if (!options.margin_share.has_value()) return IsInsideMargins(judged, level);
  // A difference that is no loss of steps is not measured by them, and so few runs cannot show one.
  if (SmallestPermutedPValue(sides.num_a, sides.num_b()) > level) return false;
  if (differs && judged.scores.scores[found.largest].shape != Shape::kSteps) return false;
  const double unit = judged.scores.scores[1].per_share_lost;
  const Interval lost = DifferenceOfScore(judged.scores, 1, sides).IntervalAt(2 * level);
  return unit > 0 && lost.low > -*options.margin_share * unit && lost.high < *options.margin_share * unit;
}

LearningVerdict::Kind Judge(const Judged& judged, const Sides& sides, const PermutedMaximum& found,
                            double level, double band_factor, const LearningOptions& options,
                            bool may_be_as_good) {
  const bool differs = Differs(found, found.value, sides.num_a, sides.num_b());
  const bool margin_was_stated = options.margin.has_value() || options.margin_share.has_value();
  if (may_be_as_good && (margin_was_stated || !differs) &&
      IsAsGood(judged, sides, found, differs, level, options)) {
    return LearningVerdict::AS_GOOD;
  }
  return differs ? KindOfDifference(judged, sides, found, band_factor, level) : LearningVerdict::CANNOT_TELL;
}

// The metric that the answer is about.
void JudgeFirst(const Sides& sides, CommonPoints points, double level, const LearningOptions& options,
                LearningVerdict* verdict) {
  Metric* const metric = verdict->mutable_metrics(0);
  metric->set_lower_is_better(points.lower_is_better);
  metric->set_level(level);
  metric->set_p_value(1);
  if (sides.curves.size() < 3) {
    // Two runs say nothing about seeds; only what is equal to the last bit is known to be.
    const size_t size = points.x.size();
    const bool are_equal = std::equal(points.y.begin(), points.y.begin() + static_cast<std::ptrdiff_t>(size),
                                      points.y.begin() + static_cast<std::ptrdiff_t>(size));
    metric->set_kind(are_equal && verdict->events().empty() ? LearningVerdict::AS_GOOD
                                                            : LearningVerdict::CANNOT_TELL);
    metric->set_runs_needed(static_cast<int64_t>(FewestRunsASide(options.error)));
    for (size_t point = 0; point < size; ++point) {
      LearningVerdict::Point* const to = metric->add_points();
      const double a = points.at(0, point), b = points.at(1, point);
      to->set_x(points.x[point]);
      *to->mutable_a() = RangeOf({a});
      *to->mutable_b() = RangeOf({b});
      *to->mutable_difference() = ToInterval(b - a, {b - a, b - a});
    }
    SetRatio(metric);
    return;
  }
  const double at = level > 0 ? level : options.error;
  const Judged judged = Prepare(sides, std::move(points), at, options);
  const PermutedMaximum found =
      PermuteMaximum(judged.scores.values, sides.curves.size(), sides.num_a, judged.scales,
                     ErrorOfPermutation(sides.num_a, sides.num_b(), at));
  metric->set_p_value(found.p_value);
  const bool may_be_as_good = std::min(sides.num_a, sides.num_b()) > 1 && !HasFailedRunOfB(*verdict);
  const double band_factor = BandFactor(judged, sides, at);
  if (level > 0) metric->set_kind(Judge(judged, sides, found, level, band_factor, options, may_be_as_good));
  AddPoints(judged, sides, band_factor, metric);
  const LearningVerdict::Kind kind = metric->kind();
  if (kind == LearningVerdict::CANNOT_TELL) {
    metric->set_runs_needed(RunsNeeded(judged, sides, found, at));
    AddShareLost(judged, sides, at, metric);
    return;
  }
  if (kind == LearningVerdict::WORSE || kind == LearningVerdict::BETTER) {
    AddWhere((kind == LearningVerdict::WORSE) == judged.points.lower_is_better ? 1 : -1, metric);
  }
  AddShareLost(judged, sides, at, metric);
  AddStopRatio(judged, sides, at, metric);
}

// The other metrics, of which none differs by chance with the error of the whole.
void JudgeOthers(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                 const std::vector<std::string>& names, double level_of_look, double error,
                 LearningVerdict* verdict) {
  const double level = level_of_look > 0 ? level_of_look : error;
  if (names.empty() || a.size() + b.size() < 3) return;
  const size_t num_runs = a.size() + b.size();
  std::vector<Judged> all;
  std::vector<std::string> judged_names;
  for (const std::string& name : names) {
    const Sides sides = SidesOf(a, b, name);
    absl::StatusOr<CommonPoints> points = BringToCommonPoints(sides.curves, MostRunsFall(sides));
    if (!points.ok()) {
      verdict->add_notes(absl::StrCat(name, ": ", points.status().message()));
      continue;
    }
    all.push_back(Prepare(sides, *std::move(points), level / static_cast<double>(names.size()), {}));
    judged_names.push_back(name);
  }
  std::vector<double> values, scales;
  for (const Judged& judged : all) scales.insert(scales.end(), judged.scales.begin(), judged.scales.end());
  for (size_t run = 0; run < num_runs; ++run) {
    for (const Judged& judged : all) {
      const auto row = judged.scores.values.begin() + static_cast<std::ptrdiff_t>(run * judged.scales.size());
      values.insert(values.end(), row, row + static_cast<std::ptrdiff_t>(judged.scales.size()));
    }
  }
  if (all.empty()) return;
  const PermutedMaximum found =
      PermuteMaximum(values, num_runs, a.size(), scales, ErrorOfPermutation(a.size(), b.size(), level));
  size_t score = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    Metric* const metric = verdict->add_metrics();
    metric->set_name(judged_names[i]);
    metric->set_level(level);
    metric->set_p_value(found.p_value);
    metric->set_lower_is_better(all[i].points.lower_is_better);
    double largest = 0;
    for (const double scale : all[i].scales) largest = std::max(largest, std::abs(found.t[score++]) / scale);
    if (level_of_look > 0 && Differs(found, largest, a.size(), b.size()))
      metric->set_kind(LearningVerdict::DIFFERENT);
    const Sides sides = SidesOf(a, b, judged_names[i]);
    AddPoints(all[i], sides, BandFactor(all[i], sides, level), metric);
  }
}

// Says where the sides were not given the same learning rate.
void NoteLearningRates(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                       const std::string& name, LearningVerdict* verdict) {
  const absl::StatusOr<CommonPoints> points = BringToCommonPoints(SidesOf(a, b, name).curves, true);
  if (!points.ok()) return;
  for (size_t point = 0; point < points->x.size(); ++point) {
    const double one = points->at(0, point), other = points->at(a.size(), point);
    if (std::abs(one - other) <= 1e-6 * std::max(std::abs(one), std::abs(other))) continue;
    verdict->add_notes(absl::StrFormat("%s is %.6g for A and %.6g for B at %s %g: is that meant?", name, one,
                                       other, verdict->x_name(), points->x[point]));
    return;
  }
}

// Says what of the curves is not compared, as some lack it.
void NoteEnds(const Sides& sides, const CommonPoints& points, LearningVerdict* verdict) {
  const auto [early, late] = std::minmax_element(
      sides.curves.begin(), sides.curves.end(),
      [](const Curve* one, const Curve* other) { return one->front().x < other->front().x; });
  if ((*early)->front().x < (*late)->front().x) {
    verdict->add_notes(
        absl::StrFormat("the runs begin at %s %g to %g: they are compared from the last beginning on",
                        verdict->x_name(), (*early)->front().x, (*late)->front().x));
  }
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const Curve* curve : sides.curves) {
    first = std::min(first, curve->back().x);
    last = std::max(last, curve->back().x);
  }
  if (first == last) return;
  const bool at_target = !StopsAtTarget(sides.curves, points.lower_is_better).empty();
  verdict->add_notes(absl::StrFormat("the runs end at %s %g to %g%s: they are compared up to the first end",
                                     verdict->x_name(), first, last,
                                     at_target ? ", each at the same target" : ""));
}

// Names what some runs have and others lack, which nothing can be told of.
void NoteMissingMetrics(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                        LearningVerdict* verdict) {
  std::set<std::string> missing;
  for (const std::vector<RunCurves>* side : {&a, &b}) {
    for (const RunCurves& run : *side) {
      for (const auto& [name, curve] : run.curves) missing.insert(name);
    }
  }
  for (const std::string& name : MetricsOfAll(a, b)) missing.erase(name);
  for (auto name = missing.begin(); name != missing.end();)
    name = IsOfLearning(*name) ? std::next(name) : missing.erase(name);
  if (missing.empty()) return;
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> named(missing.begin(),
                                 std::next(missing.begin(), std::min(kMostNamed, missing.size())));
  if (missing.size() > kMostNamed) named.push_back(absl::StrCat(missing.size() - kMostNamed, " more"));
  verdict->add_notes(absl::StrCat("not in all runs, and left out: ", absl::StrJoin(named, ", ")));
}

absl::Status CheckHasMetric(const std::vector<RunCurves>& runs, const std::string& metric) {
  for (const RunCurves& run : runs) {
    const auto found = run.curves.find(metric);
    if (found != run.curves.end() && !found->second.empty()) continue;
    std::vector<std::string> names;
    for (const auto& [name, curve] : run.curves) names.push_back(name);
    return absl::InvalidArgumentError(
        absl::StrCat(run.name, ": has no metric ", metric, "; it has ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace

size_t FewestRunsASide(double error) {
  size_t fewest = 2;
  while (SmallestPermutedPValue(fewest, fewest) > error) ++fewest;
  return fewest;
}

absl::StatusOr<LearningVerdict> Compare(const std::vector<RunCurves>& all_a,
                                        const std::vector<RunCurves>& all_b, const std::string& x_name,
                                        const LearningOptions& options) {
  const std::string name = options.metric.empty() ? DefaultMetric(all_a, all_b) : options.metric;
  if (name.empty()) return absl::InvalidArgumentError("there is no metric that all runs have");
  OTT_RETURN_IF_ERROR(CheckHasMetric(all_a, name));
  OTT_RETURN_IF_ERROR(CheckHasMetric(all_b, name));
  LearningVerdict verdict;
  verdict.set_x_name(x_name);
  verdict.set_error(options.error);
  if (options.margin.has_value()) verdict.set_margin(absl::StrFormat("%g", *options.margin));
  if (options.margin_share.has_value()) {
    verdict.set_margin(absl::StrFormat("%g %% of the steps", *options.margin_share * 100));
  }
  verdict.add_metrics()->set_name(name);

  // Runs of B that collapse must not say what is better.
  std::optional<bool> lower = options.better == Better::kLower;
  if (options.better == Better::kByCurve) lower = IsLoss(name) ? true : CurvesFall(SidesOf(all_a, {}, name));
  if (!lower.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": the curves of A do not tell whether lower or higher is better; --better has to say it"));
  }
  const bool lower_is_better = *lower;
  const ExaminedRuns examined = ExamineRuns(all_a, all_b, name, lower_is_better, &verdict);
  const std::vector<RunCurves> a = WithoutRepeated(examined.a, name, "A", &verdict);
  const std::vector<RunCurves> b = WithoutRepeated(examined.b, name, "B", &verdict);
  verdict.set_num_a(static_cast<int32_t>(a.size()));
  verdict.set_num_b(static_cast<int32_t>(b.size()));
  if (a.empty() || b.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(a.empty() ? "A" : "B", ": all runs end before half of what the others do"));
  }

  const Sides sides = SidesOf(a, b, name);
  OTT_ASSIGN_OR_RETURN(CommonPoints points, BringToCommonPoints(sides.curves, lower_is_better));
  NoteEnds(sides, points, &verdict);
  const double level = LevelOfLook(sides.num_a, sides.num_b(), options);
  JudgeFirst(sides, std::move(points), level, options, &verdict);
  std::vector<std::string> others;
  for (const std::string& other : MetricsOfAll(a, b)) {
    if (IsLearningRate(other)) NoteLearningRates(a, b, other, &verdict);
    if (other != name && IsOfLearning(other)) others.push_back(other);
  }
  JudgeOthers(a, b, others, level, options.error, &verdict);
  NoteMissingMetrics(all_a, all_b, &verdict);
  return verdict;
}

}  // namespace ott::learning
