// Judges random curves by the rules of docs/decisions/learning_curves.md, which are written down here once
// more.

#include "ott/questions/learning/comparison.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/group_sequential.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/permuted_maximum.h"
#include "ott/questions/learning/examined_runs.h"
#include "ott/questions/learning/learning_answer.h"

namespace ott::learning {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using Random = std::mt19937_64;

// B less A; the spread of a side of one run is that of the other.
Estimate Difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() > 1 && b.size() > 1) return WelchDifference(a, b);
  const std::vector<double>& known = a.size() > 1 ? a : b;
  double squares = 0;
  for (const double value : known) squares += std::pow(value - Mean(known), 2);
  const double n = static_cast<double>(known.size());
  return {Mean(b) - Mean(a), std::sqrt(squares / (n - 1) * (1 + 1 / n)), n - 1};
}

struct Oracle {
  const LearningOptions& options;
  size_t num_a, num_runs;
  CommonPoints points;

  bool is_one_run() const { return num_a == 1 || num_runs - num_a == 1; }

  // Returns the values of a side in a column of a table of all runs.
  std::vector<double> Side(const std::vector<double>& table, size_t column, bool is_b) const {
    std::vector<double> values;
    for (size_t run = is_b ? num_a : 0; run < (is_b ? num_runs : num_a); ++run)
      values.push_back(table[run * (table.size() / num_runs) + column]);
    return values;
  }
  Estimate DifferenceOf(const std::vector<double>& table, size_t column) const {
    return Difference(Side(table, column, false), Side(table, column, true));
  }

  double Level() const {
    if (is_one_run() && num_runs < 6) return 0;
    if (options.max_runs == 0) return options.error;
    const size_t runs = std::min(num_a, num_runs - num_a), most = std::max(options.max_runs, runs);
    std::vector<double> information;
    size_t looks = 0;
    for (size_t n = 2; n <= most; ++n) {
      const double share = static_cast<double>(n) / static_cast<double>(most);
      if (SmallestPermutedPValue(n, n) > options.error * SpentError(share)) continue;
      information.push_back(share);
      looks += n <= runs;
    }
    return looks == 0 ? 0 : GroupSequentialLevels(information, options.error)[looks - 1];
  }

  // Fills in the first metric, of 3 runs or more.
  LearningVerdict::Metric Judge(const std::vector<double>& stops, bool has_failed) const {
    LearningVerdict::Metric metric;
    const double level = Level(), at = level > 0 ? level : options.error;
    const double freedom = static_cast<double>(num_runs - 2);
    const RunScores scores = ScoreRuns(points, is_one_run() ? std::vector<double>() : stops, !is_one_run());
    std::vector<double> scales;
    for (const Score& score : scores.scores)
      scales.push_back(StudentTQuantile(1 - at * score.share / 2, freedom));
    const PermutedMaximum found =
        PermuteMaximum(scores.values, num_runs, num_a, scales,
                       is_one_run() ? std::max(at, 1.5 / static_cast<double>(num_runs)) : at);
    const double threshold = is_one_run() ? std::max(1.0, 3 * found.critical) : found.critical;
    const bool differs = found.value > threshold;
    const bool can_permute = SmallestPermutedPValue(num_a, num_runs - num_a) <= at;

    // The band is that of the largest t of all points, of what is left without the means of the sides.
    std::vector<double> residuals = points.y;
    const size_t num_points = points.x.size();
    for (size_t i = 0; i < residuals.size(); ++i)
      residuals[i] -= Mean(Side(points.y, i % num_points, i / num_points >= num_a));
    const double band =
        can_permute
            ? PermuteMaximum(residuals, num_runs, num_a, std::vector<double>(num_points, 1), at).critical
            : StudentTQuantile(1 - at / scores.effective_points / 2, freedom);
    std::vector<double> ratios;
    bool is_inside = true;
    double runs_as_good = 1;
    for (size_t i = 0; i < num_points; ++i) {
      LearningVerdict::Point& point = *metric.add_points();
      point.set_x(points.x[i]);
      for (const bool is_b : {false, true}) {
        const std::vector<double> side = Side(points.y, i, is_b);
        LearningVerdict::Interval& range = *(is_b ? point.mutable_b() : point.mutable_a());
        range.set_value(Mean(side));
        range.set_low(*std::min_element(side.begin(), side.end()));
        range.set_high(*std::max_element(side.begin(), side.end()));
      }
      const Estimate difference = DifferenceOf(points.y, i);
      const double half = difference.standard_error > 0 ? band * difference.standard_error : 0;
      point.mutable_difference()->set_value(difference.value);
      point.mutable_difference()->set_low(difference.value - half);
      point.mutable_difference()->set_high(difference.value + half);
      const std::vector<double> drawn = DrawIn(Side(points.y, i, false), kMostDeviations);
      const auto [low, high] = std::minmax_element(drawn.begin(), drawn.end());
      point.set_margin(options.margin.value_or((*high - *low) / 2));
      if (point.a().value() != 0) ratios.push_back(point.b().value() / point.a().value());
      const Interval one_sided = difference.IntervalAt(2 * at);
      is_inside = is_inside && one_sided.low >= -point.margin() && one_sided.high <= point.margin();
      const double room = point.margin() - std::abs(difference.value);
      const double needed = std::pow((one_sided.high - difference.value) / room, 2);
      runs_as_good = std::max(runs_as_good, room > 0 ? needed : 10000);
    }
    if (!ratios.empty()) metric.set_ratio(Median(ratios));
    metric.set_level(level);
    metric.set_p_value(found.p_value);
    metric.set_lower_is_better(points.lower_is_better);

    const double unit = scores.scores[1].per_share_lost;
    if (options.margin_share.has_value()) {
      const Interval lost = DifferenceOf(scores.measured, 1).IntervalAt(2 * at);
      is_inside = can_permute && (!differs || scores.scores[found.largest].shape == Shape::kSteps) &&
                  unit > 0 && std::max(-lost.low, lost.high) < *options.margin_share * unit;
    }
    if (is_one_run() || has_failed) is_inside = false;
    if (level > 0 && is_inside && (options.margin || options.margin_share || !differs)) {
      metric.set_kind(LearningVerdict::AS_GOOD);
    } else if (level > 0 && differs) {
      std::set<bool> worse;
      const auto is_found = [&](size_t score) {
        return std::abs(found.t[score]) / scales[score] > threshold;
      };
      const auto is_worse = [&](size_t score) { return scores.scores[score].worse * found.t[score] > 0; };
      const double sign = points.lower_is_better ? 1 : -1;
      for (size_t i = 0; i < scales.size(); ++i)
        if (scores.scores[i].plain == i && is_found(i)) worse.insert(is_worse(i));
      for (const LearningVerdict::Point& point : metric.points()) {
        if (point.difference().low() > 0 || point.difference().high() < 0)
          worse.insert(sign * point.difference().value() > 0);
      }
      const Interval end = DifferenceOf(points.y, num_points - 1).IntervalAt(at);
      if (end.low > 0 || end.high < 0) worse.insert(sign * (end.low + end.high) > 0);
      const bool has_none = worse.empty();
      for (size_t i = 0; i < scales.size() && has_none; ++i) {
        const Score& score = scores.scores[i];
        const bool is_inner = score.first > 0 && score.last + 1 < num_points;
        if (!is_found(i) || !(score.shape == Shape::kSteps || is_inner)) continue;
        worse.insert(is_worse(i));
        worse.insert(is_worse(score.plain));
      }
      metric.set_kind(worse.size() != 1 ? LearningVerdict::MIXED
                      : *worse.begin()  ? LearningVerdict::WORSE
                                        : LearningVerdict::BETTER);
    }
    const bool has_direction =
        metric.kind() == LearningVerdict::WORSE || metric.kind() == LearningVerdict::BETTER;
    const bool is_higher = (metric.kind() == LearningVerdict::WORSE) == points.lower_is_better;
    for (const LearningVerdict::Point& point : metric.points()) {
      if (!has_direction || !(is_higher ? point.difference().low() > 0 : point.difference().high() < 0))
        continue;
      if (!metric.has_differs_from()) metric.set_differs_from(point.x());
      metric.set_differs_to(point.x());
    }
    const auto share_lost = [&](size_t score) {
      const Estimate lost = DifferenceOf(scores.measured, score);
      const double per_share = scores.scores[score].per_share_lost;
      LearningVerdict::Interval share;
      share.set_value(lost.value / per_share);
      share.set_low(lost.IntervalAt(at).low / per_share);
      share.set_high(lost.IntervalAt(at).high / per_share);
      return share;
    };
    if (scores.scores[0].per_share_lost > 0 && std::abs(share_lost(1).value()) < 1) {
      const bool agree =
          share_lost(0).value() >= share_lost(1).low() && share_lost(0).value() <= share_lost(1).high();
      *metric.mutable_share_lost() = share_lost(agree && num_runs - num_a > 1 ? 0 : 1);
    }
    if (metric.kind() == LearningVerdict::CANNOT_TELL) {
      const double critical = std::isfinite(found.critical) ? found.critical : 1;
      const double to_differ = found.value > 0 ? std::pow(critical / found.value, 2) : 10000;
      const double runs = static_cast<double>(std::min(num_a, num_runs - num_a));
      const double needed = std::max({std::ceil(runs * std::min(runs_as_good, to_differ)), runs + 1,
                                      static_cast<double>(FewestRunsASide(at))});
      metric.set_runs_needed(needed <= 10000 ? static_cast<int64_t>(needed) : 0);
    } else if (!is_one_run() && !stops.empty()) {
      std::vector<double> a(stops.begin(), stops.begin() + static_cast<std::ptrdiff_t>(num_a));
      const std::vector<double> b(stops.begin() + static_cast<std::ptrdiff_t>(num_a), stops.end());
      const Interval later = Difference(a, b).IntervalAt(at);
      metric.mutable_stop_ratio()->set_value(Mean(b) / Mean(a));
      metric.mutable_stop_ratio()->set_low(1 + later.low / Mean(a));
      metric.mutable_stop_ratio()->set_high(1 + later.high / Mean(a));
    }
    return metric;
  }
};

void ExpectNear(const LearningVerdict::Interval& is, const LearningVerdict::Interval& should,
                const std::string& what) {
  for (const auto& [a, b] :
       {std::pair(is.value(), should.value()), {is.low(), should.low()}, {is.high(), should.high()}}) {
    EXPECT_TRUE(a == b || std::abs(a - b) <= 1e-7 * (1 + std::abs(b))) << a << " instead of " << b << what;
  }
}

// Runs of each side that fall from 4 to 1, or rise as much, whose seeds differ for the whole run and from
// point to point.
struct Scene {
  std::vector<RunCurves> a, b;
  LearningOptions options;
  std::string metric;

  explicit Scene(Random& random) {
    const auto draw = [&](std::vector<double> of) { return of[random() % of.size()]; };
    std::normal_distribution<double> normal;
    const double level = draw({0, 0.02, 0.1}), noise = draw({0.005, 0.02}), sign = draw({1, 0.1, -1});
    const int num_points = static_cast<int>(draw({1, 2, 5, 9, 9})), what = static_cast<int>(random() % 6);
    const double size = draw({0.01, 0.02, 0.05, 0.2, 1, 4});
    const bool stops = what == 5;
    metric = sign > 0 && random() % 2 == 0 ? "loss" : "accuracy";
    for (std::vector<RunCurves>* side : {&a, &b}) {
      const int count = static_cast<int>(draw({1, 2, 3, 5, 6, 7}));
      for (int run = 0; run < count; ++run) {
        RunCurves& curves = side->emplace_back();
        curves.name = absl::StrCat(side == &a ? "a" : "b", run);
        const double seed = level * normal(random);
        for (int i = 1; i <= num_points + (stops ? 9 : 0); ++i) {
          const double x = 1000.0 * i / num_points;
          const double by = side == &a ? 0 : size;
          double y = 1 + 3 * std::exp(-x * (what == 1 ? 1 - by / 2 : what == 5 ? 1 - by / 4 : 1) / 300);
          if (what == 2) y += by;
          if (what == 3 && i == num_points / 2 + 1) y += by;
          if (what == 4) y += i > num_points / 2 ? by : -by;
          y += seed + noise * normal(random);
          curves.curves[metric].push_back({x, sign * y});
          if (stops && y < 1.3) break;
        }
        if (num_points > 1 && random() % 40 == 0) curves.curves[metric].back().y = NAN;
      }
    }
    if (a.size() + b.size() == 2 && random() % 2 == 0) {
      if (num_points > 1 && what % 2 == 0) a[0].curves[metric].back().y = NAN;
      b[0].curves = a[0].curves;
    }
    options.error = draw({0.01, 0.05, 0.2});
    if (random() % 4 == 0) options.margin = draw({0.01, 0.1, 1});
    if (!options.margin && random() % 4 == 0) options.margin_share = draw({0.05, 0.3, 3});
    if (random() % 4 == 0) options.max_runs = static_cast<size_t>(draw({5, 8}));
    if (random() % 2 == 0) options.better = sign > 0 ? Better::kLower : Better::kHigher;
  }
};

std::vector<const Curve*> CurvesOf(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                                   const std::string& metric) {
  std::vector<const Curve*> curves;
  for (const std::vector<RunCurves>* side : {&a, &b})
    for (const RunCurves& run : *side) curves.push_back(&run.curves.at(metric));
  return curves;
}

// Only the last values of a curve may be not finite.
bool MostFall(const std::vector<const Curve*>& curves) {
  const auto num_fall = std::count_if(curves.begin(), curves.end(), [](const Curve* curve) {
    auto last = curve->end() - 1;
    while (!std::isfinite(last->y)) --last;
    return last->y <= curve->front().y;
  });
  return 2 * static_cast<size_t>(num_fall) >= curves.size();
}

TEST(Comparison, OfRandomCurvesIsWhatTheRulesSay) {
  Random random(1);
  std::set<LearningVerdict::Kind> kinds;
  for (int trial = 0; trial < 400; ++trial) {
    const Scene scene(random);
    const auto verdict = Compare(scene.a, scene.b, "step", scene.options);
    if (!verdict.ok()) continue;
    LearningVerdict examined;
    const bool lower_is_better = scene.options.better == Better::kByCurve
                                     ? scene.metric == "loss" || MostFall(CurvesOf(scene.a, {}, scene.metric))
                                     : scene.options.better == Better::kLower;
    const ExaminedRuns runs = ExamineRuns(scene.a, scene.b, scene.metric, lower_is_better, &examined);
    const std::vector<const Curve*> curves = CurvesOf(runs.a, runs.b, scene.metric);
    ASSERT_EQ(verdict->num_a(), runs.a.size());
    ASSERT_EQ(verdict->num_b(), runs.b.size());
    EXPECT_EQ(verdict->events_size(), examined.events_size());
    const auto [first, last] = std::minmax_element(
        curves.begin(), curves.end(),
        [](const Curve* one, const Curve* other) { return one->back().x < other->back().x; });
    const std::vector<double> stops = StopsAtTarget(curves, lower_is_better);
    std::vector<std::string> notes;
    if ((*first)->back().x < (*last)->back().x) {
      notes.push_back(absl::StrFormat(
          "the runs end at step %g to %g%s: they are compared up to the first end", (*first)->back().x,
          (*last)->back().x, stops.empty() ? "" : ", each at the same target"));
    }
    EXPECT_THAT(verdict->notes(), ElementsAreArray(notes));
    const Oracle oracle = {scene.options, runs.a.size(), curves.size(),
                           BringToCommonPoints(curves, lower_is_better).value()};
    if (curves.size() < 3) {
      EXPECT_EQ(verdict->metrics(0).runs_needed(), FewestRunsASide(scene.options.error));
      // One run of each side is as good only if it is the same, and has not failed.
      bool is_same = examined.events().empty();
      std::vector<double> ratios;
      ASSERT_EQ(verdict->metrics(0).points_size(), oracle.points.x.size());
      for (int i = 0; i < verdict->metrics(0).points_size(); ++i) {
        const LearningVerdict::Point& point = verdict->metrics(0).points(i);
        const double one = oracle.points.at(0, i), other = oracle.points.at(1, i);
        EXPECT_EQ(std::make_tuple(point.x(), point.a().low(), point.b().high(), point.difference().value()),
                  std::make_tuple(oracle.points.x[i], one, other, other - one));
        is_same = is_same && one == other;
        ratios.push_back(other / one);
      }
      EXPECT_EQ(verdict->metrics(0).ratio(), Median(ratios));
      EXPECT_EQ(verdict->metrics(0).kind(),
                is_same ? LearningVerdict::AS_GOOD : LearningVerdict::CANNOT_TELL);
      continue;
    }
    const LearningVerdict::Metric expected = oracle.Judge(stops, HasFailedRunOfB(examined));
    const LearningVerdict::Metric& metric = verdict->metrics(0);
    const std::string what = absl::StrCat(" in trial ", trial, "\n", ToText(*verdict));
    kinds.insert(expected.kind());
    EXPECT_EQ(metric.kind(), expected.kind()) << what;
    EXPECT_EQ(metric.p_value(), expected.p_value()) << what;
    EXPECT_EQ(metric.level(), expected.level()) << what;
    EXPECT_EQ(metric.lower_is_better(), expected.lower_is_better()) << what;
    EXPECT_EQ(metric.runs_needed(), expected.runs_needed()) << what;
    EXPECT_EQ(metric.has_share_lost(), expected.has_share_lost()) << what;
    EXPECT_EQ(metric.has_stop_ratio(), expected.has_stop_ratio()) << what;
    EXPECT_EQ(metric.has_differs_from(), expected.has_differs_from()) << what;
    EXPECT_EQ(metric.differs_from(), expected.differs_from()) << what;
    EXPECT_EQ(metric.differs_to(), expected.differs_to()) << what;
    EXPECT_NEAR(metric.ratio(), expected.ratio(), 1e-9) << what;
    ExpectNear(metric.share_lost(), expected.share_lost(), what);
    ExpectNear(metric.stop_ratio(), expected.stop_ratio(), what);
    ASSERT_EQ(metric.points_size(), expected.points_size()) << what;
    for (int i = 0; i < metric.points_size(); ++i) {
      EXPECT_EQ(metric.points(i).x(), expected.points(i).x()) << what;
      EXPECT_NEAR(metric.points(i).margin(), expected.points(i).margin(), 1e-9) << what;
      ExpectNear(metric.points(i).a(), expected.points(i).a(), what);
      ExpectNear(metric.points(i).b(), expected.points(i).b(), what);
      ExpectNear(metric.points(i).difference(), expected.points(i).difference(), what);
    }
    // The other metrics share the error.
    if (trial % 4 != 0) continue;
    std::vector<RunCurves> a = runs.a, b = runs.b;
    for (std::vector<RunCurves>* side : {&a, &b}) {
      for (RunCurves& run : *side) {
        run.curves["grad_norm"] = run.curves[scene.metric];
        run.curves["constant"] = {{1, 3}, {2, 3}};
        run.curves["lr"] = {{1, 1e-3}, {2, side == &a ? 1e-4 : 2e-4}};
      }
    }
    const auto with_others = Compare(a, b, "step", scene.options).value();
    const double level = metric.level() > 0 ? metric.level() : scene.options.error;
    const bool falls = MostFall(curves);
    const CommonPoints points = BringToCommonPoints(curves, falls).value();
    const RunScores scores =
        ScoreRuns(points, oracle.is_one_run() ? std::vector<double>() : StopsAtTarget(curves, falls),
                  !oracle.is_one_run());
    std::vector<double> scales;
    for (const Score& score : scores.scores) {
      // Each of the two has half of the level.
      scales.push_back(
          StudentTQuantile(1 - level / 2 * score.share / 2, static_cast<double>(curves.size() - 2)));
    }
    const double n = static_cast<double>(curves.size());
    const PermutedMaximum found = PermuteMaximum(scores.values, curves.size(), a.size(), scales,
                                                 oracle.is_one_run() ? std::max(level, 1.5 / n) : level);
    const bool differs =
        metric.level() > 0 &&
        found.value > (oracle.is_one_run() ? std::max(1.0, 3 * found.critical) : found.critical);
    ASSERT_EQ(with_others.metrics_size(), 3) << what;
    EXPECT_THAT(with_others.notes(),
                Contains("lr is 0.0001 for A and 0.0002 for B at step 2: is that meant?"));
    for (const int other : {1, 2}) {
      EXPECT_EQ(with_others.metrics(other).level(), level) << what;
      EXPECT_NEAR(with_others.metrics(other).p_value(), found.p_value, 1e-9) << what;
    }
    EXPECT_EQ(with_others.metrics(1).kind(), LearningVerdict::CANNOT_TELL) << what;
    EXPECT_EQ(with_others.metrics(1).ratio(), 1) << what;
    EXPECT_EQ(with_others.metrics(2).name(), "grad_norm");
    EXPECT_EQ(with_others.metrics(2).lower_is_better(), falls) << what;
    EXPECT_EQ(with_others.metrics(2).kind(),
              differs ? LearningVerdict::DIFFERENT : LearningVerdict::CANNOT_TELL)
        << what;
    EXPECT_EQ(with_others.metrics(2).points_size(), points.x.size()) << what;
    // A value that is not finite counts as the worst one, so ratios are the same only in this direction.
    if (falls != lower_is_better) continue;
    EXPECT_NEAR(with_others.metrics(2).ratio(), metric.ratio(), 1e-9) << what;
  }
  EXPECT_EQ(kinds.size(), 5);
}

TEST(ExamineRuns, NamesWhatIsWrongWithARunAndLeavesOutWhatWasCutShort) {
  using Event = LearningVerdict::Event;
  Random random(2);
  for (int trial = 0; trial < 400; ++trial) {
    const bool lower_is_better = random() % 2 == 0;
    std::vector<RunCurves> sides[2];
    std::vector<double> ends;
    size_t num_worse = 0;
    for (std::vector<RunCurves>& side : sides) {
      for (int run = 0; run < 1 + static_cast<int>(random() % 4); ++run) {
        RunCurves& curves = side.emplace_back();
        curves.name = absl::StrCat(side.size());
        Curve& curve = curves.curves["m"];
        const int length = 1 + static_cast<int>(random() % 6);
        for (int x = 1; x <= length; ++x)
          curve.push_back({static_cast<double>(x),
                           random() % 5 == 0 ? INFINITY : 0.5 * static_cast<double>(random() % 8)});
        ends.push_back(length);
        const double change = curve.back().y - curve.front().y;
        num_worse += lower_is_better ? change > 0 : change < 0;
      }
    }
    std::vector<std::string> events;
    size_t num_kept[2] = {0, 0};
    for (const bool is_b : {false, true}) {
      for (const RunCurves& run : sides[is_b]) {
        const auto add = [&](Event::Kind kind, double x) {
          events.push_back(absl::StrCat(Event::Kind_Name(kind), " ", run.name, " ", is_b, " ", x));
        };
        const Curve& curve = run.curves.at("m");
        size_t end = curve.size();
        while (end > 0 && !std::isfinite(curve[end - 1].y)) --end;
        for (size_t i = 0; i < end; ++i) {
          if (std::isfinite(curve[i].y)) continue;
          add(Event::ONCE_NOT_FINITE, curve[i].x);
          break;
        }
        if (end < curve.size()) add(Event::NOT_FINITE, curve[end].x);
        // What is left begins with its first finite value.
        const auto first = std::find_if(curve.begin(), curve.begin() + static_cast<std::ptrdiff_t>(end),
                                        [](const Point& point) { return std::isfinite(point.y); });
        const double change = curve.back().y - first->y;
        if (2 * num_worse < ends.size() && (lower_is_better ? change > 0 : change < 0))
          add(Event::DIVERGED, curve.back().x);
        const bool ends_finite = end == curve.size();
        if (ends_finite && 2 * curve.back().x < Median(ends)) {
          add(Event::CUT_SHORT, curve.back().x);
        } else {
          ++num_kept[is_b];
        }
      }
    }
    LearningVerdict verdict;
    const ExaminedRuns runs = ExamineRuns(sides[0], sides[1], "m", lower_is_better, &verdict);
    std::vector<std::string> is;
    bool has_failed = false;
    for (const Event& event : verdict.events()) {
      is.push_back(
          absl::StrCat(Event::Kind_Name(event.kind()), " ", event.run(), " ", event.is_b(), " ", event.x()));
      has_failed = has_failed || (event.is_b() && event.kind() != Event::ONCE_NOT_FINITE);
    }
    EXPECT_EQ(is, events) << trial;
    EXPECT_EQ(HasFailedRunOfB(verdict), has_failed);
    EXPECT_EQ(runs.a.size(), num_kept[0]) << trial;
    EXPECT_EQ(runs.b.size(), num_kept[1]) << trial;
    for (const auto& [kept, all] : {std::pair(&runs.a, &sides[0]), {&runs.b, &sides[1]}}) {
      for (const RunCurves& run : *kept) {
        const Curve& curve = run.curves.at("m");
        const Curve& whole = (*all)[std::stoul(run.name) - 1].curves.at("m");
        const double last_of_all = *std::max_element(ends.begin(), ends.end());
        EXPECT_EQ(curve.back().x, std::isfinite(whole.back().y) ? whole.back().x : last_of_all);
        bool was_infinite = false;
        for (const Point& point : curve) {
          EXPECT_FALSE(was_infinite && std::isfinite(point.y)) << trial;
          was_infinite = was_infinite || !std::isfinite(point.y);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ott::learning
