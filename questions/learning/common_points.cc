#include "ott/questions/learning/common_points.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "ott/core/base/check.h"
#include "ott/core/statistics/location.h"

namespace ott::learning {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// Points nearer to each other than this share of their usual distance are one: epochs are counted in
// fractions that differ in the last digits.
constexpr double kSamePoint = 0.02;
// The limit of DrawIn() in scores, which one run of long tails would rule.
constexpr double kMostDeviationsInScores = 3;
constexpr double kLeastShrinkage = 0.1;
// Weights of the scores, as shares of the error. They need no sum of one: permutations set the error of all.
// Contrasts need little: where points correlate strongly they find far smaller changes than means of windows,
// and where they do not, they are no better.
constexpr double kStepsShare = 0.3, kScanShare = 0.5, kContrastShare = 0.05, kEndShare = 0.2,
                 kWholeShare = 0.05, kTargetShare = 0.1;
// The steps that the template has lost.
constexpr double kTemplateLoss = 0.05;

// The straight line through the two points around x; before the first point, that of the first two. NaN where
// one of them is not finite.
double Interpolate(const Curve& curve, double x) {
  if (curve.size() == 1) return curve[0].y;
  auto right = std::lower_bound(curve.begin(), curve.end(), x,
                                [](const Point& point, double value) { return point.x < value; });
  if (right != curve.end() && right->x == x) return right->y;
  if (right == curve.begin()) ++right;
  if (right == curve.end()) --right;
  const Point &a = *(right - 1), &b = *right;
  return a.y + (x - a.x) * ((b.y - a.y) / (b.x - a.x));
}

// The mean of the interpolated curve between low and high.
double MeanBetween(const Curve& curve, double low, double high) {
  double area = 0;
  Point last = {low, Interpolate(curve, low)};
  for (auto at = std::upper_bound(curve.begin(), curve.end(), low,
                                  [](double value, const Point&point) { return value < point.x; });
       at != curve.end() && at->x < high; ++at) {
    area += (at->x - last.x) * (last.y + at->y) / 2;
    last = *at;
  }
  area += (high - last.x) * (last.y + Interpolate(curve, high)) / 2;
  return area / (high - low);
}

// The points of all curves between low and high, those that are nearly the same once. Empty if there are too
// many.
std::vector<double> DistinctPoints(const std::vector<const Curve*>& curves, double low, double high) {
  std::vector<double> all;
  size_t most = 0;
  for (const Curve* curve : curves) {
    size_t count = 0;
    for (const Point& point : *curve) {
      if (point.x < low || point.x > high) continue;
      ++count;
      all.push_back(point.x);
    }
    if (count > kMostPoints) return {};
    most = std::max(most, count);
  }
  std::sort(all.begin(), all.end());
  std::vector<double> distinct;
  const double same = most > 1 ? kSamePoint * (high - low) / static_cast<double>(most - 1) : 0;
  for (const double x : all) {
    if (distinct.empty() || x - distinct.back() > same) distinct.push_back(x);
  }
  return distinct.size() <= kMostPoints ? distinct : std::vector<double>();
}

void SetColumn(size_t point, const std::vector<double>& column, CommonPoints* points) {
  for (size_t run = 0; run < column.size(); ++run) points->y[run * points->x.size() + point] = column[run];
}

std::vector<double> Column(const CommonPoints& points, size_t point) {
  std::vector<double> column(points.num_runs);
  for (size_t run = 0; run < column.size(); ++run) column[run] = points.at(run, point);
  return column;
}

std::vector<double> FiniteOf(const std::vector<double>& values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  return finite;
}

// Sets what is not finite to the worst value.
void SetFinite(CommonPoints* points) {
  for (size_t point = 0; point < points->x.size(); ++point) {
    std::vector<double> column = Column(*points, point);
    const std::vector<double> finite = FiniteOf(column);
    const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
    for (double& value : column) {
      if (!std::isfinite(value)) value = points->lower_is_better ? *high : *low;
    }
    SetColumn(point, column, points);
  }
}

// Deviations from the mean curve in standard deviations.
struct Deviations {
  size_t num_runs = 0;
  size_t num_points = 0;
  std::vector<double> mean;
  std::vector<double> spread;  // 1 where the runs do not differ
  std::vector<double> z;       // row-major [num_runs, num_points]
  std::vector<double> raw_z;   // the same of values that were not drawn in
};

// most: the limit of DrawIn() at each point.
Deviations DeviationsOf(const CommonPoints& points, double most) {
  Deviations deviations;
  deviations.num_runs = points.num_runs;
  deviations.num_points = points.x.size();
  deviations.z = deviations.raw_z = points.y;
  for (size_t point = 0; point < points.x.size(); ++point) {
    const std::vector<double> column = DrawIn(Column(points, point), most);
    const double mean = Mean(column);
    double squares = 0;
    for (const double value : column) squares += (value - mean) * (value - mean);
    double spread = std::sqrt(squares / static_cast<double>(points.num_runs - 1));
    const bool is_rounding = spread <= 1e-12 * std::abs(mean);
    if (is_rounding) spread = 1;
    for (size_t run = 0; run < points.num_runs; ++run) {
      const size_t at = run * points.x.size() + point;
      deviations.z[at] = is_rounding ? 0 : (column[run] - mean) / spread;
      deviations.raw_z[at] = (deviations.raw_z[at] - mean) / spread;
    }
    deviations.mean.push_back(mean);
    deviations.spread.push_back(spread);
  }
  return deviations;
}

using Matrix = std::vector<double>;  // row-major, square

// The correlation of the points, shrunk towards none as far as makes its expected error least (Schäfer and
// Strimmer 2005, table 1, target B for correlations).
Matrix ShrunkCorrelation(const Deviations& deviations, double* effective_points) {
  const size_t size = deviations.num_points;
  const double n = static_cast<double>(deviations.num_runs);
  Matrix sums(size * size), squares(size * size);
  for (size_t run = 0; run < deviations.num_runs; ++run) {
    const double* const z = deviations.z.data() + run * size;
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        sums[i * size + j] += z[i] * z[j];
        squares[i * size + j] += z[i] * z[j] * z[i] * z[j];
      }
    }
  }
  double uncertain = 0, off_diagonal = 0;
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double sum = sums[i * size + j];
      uncertain += n / std::pow(n - 1, 3) * (squares[i * size + j] - sum * sum / n);
      off_diagonal += sum * sum / ((n - 1) * (n - 1));
    }
  }
  const double shrinkage =
      std::clamp(off_diagonal > 0 ? uncertain / off_diagonal : 1.0, kLeastShrinkage, 1.0);
  const double count = static_cast<double>(size);
  *effective_points = count * count / (count + 2 * off_diagonal);
  Matrix correlation(size * size);
  for (size_t i = 0; i < size; ++i) {
    correlation[i * size + i] = 1;
    for (size_t j = 0; j < i; ++j) {
      correlation[i * size + j] = correlation[j * size + i] = (1 - shrinkage) * sums[i * size + j] / (n - 1);
    }
  }
  return correlation;
}

// Solves matrix x = right by Cholesky's decomposition. REQUIRES: symmetric, positive definite.
std::vector<double> Solve(Matrix matrix, std::vector<double> right) {
  const size_t size = right.size();
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = matrix[i * size + j];
      for (size_t k = 0; k < j; ++k) sum -= matrix[i * size + k] * matrix[j * size + k];
      matrix[i * size + j] = i == j ? std::sqrt(sum) : sum / matrix[j * size + j];
    }
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < i; ++k) right[i] -= matrix[i * size + k] * right[k];
    right[i] /= matrix[i * size + i];
  }
  for (size_t i = size; i-- > 0;) {
    for (size_t k = i + 1; k < size; ++k) right[i] -= matrix[k * size + i] * right[k];
    right[i] /= matrix[i * size + i];
  }
  return right;
}

double Dot(const double* a, const std::vector<double>& b) {
  return std::inner_product(b.begin(), b.end(), a, 0.0);
}

// By how much the mean curve changes, in the spread of the runs, if a twentieth of the steps is lost.
std::vector<double> TemplateOfLostSteps(const CommonPoints& points, const Deviations& deviations) {
  Curve mean;
  for (size_t point = 0; point < points.x.size(); ++point) {
    mean.push_back({points.x[point], deviations.mean[point]});
  }
  std::vector<double> change(points.x.size());
  for (size_t point = 0; point < points.x.size(); ++point) {
    const double x = points.x[point];
    change[point] = (Interpolate(mean, x - kTemplateLoss * std::abs(x)) - deviations.mean[point]) /
                    deviations.spread[point];
  }
  return change;
}

// Scores of all runs.
class Scoring {
 public:
  explicit Scoring(const Deviations& deviations)
      : deviations_(deviations), values_(deviations.num_runs), measured_(deviations.num_runs) {}

  // Adds the weighted sum of a run's deviations.
  void Add(const Score& score, const std::vector<double>& weights) {
    scores_.push_back(score);
    for (size_t run = 0; run < values_.size(); ++run) {
      const size_t first = run * deviations_.num_points;
      values_[run].push_back(Dot(deviations_.z.data() + first, weights));
      measured_[run].push_back(Dot(deviations_.raw_z.data() + first, weights));
    }
  }
  void AddValues(const Score& score, const std::vector<double>& values) {
    scores_.push_back(score);
    for (size_t run = 0; run < values_.size(); ++run) {
      values_[run].push_back(values[run]);
      measured_[run].push_back(values[run]);
    }
  }

  size_t num_scores() const { return scores_.size(); }

  RunScores Finish(double effective_points) const {
    return {scores_, Joined(values_), Joined(measured_), effective_points};
  }

 private:
  using Rows = std::vector<std::vector<double>>;  // by run

  static std::vector<double> Joined(const Rows& rows) {
    std::vector<double> joined;
    for (const std::vector<double>& row : rows) joined.insert(joined.end(), row.begin(), row.end());
    return joined;
  }

  const Deviations& deviations_;
  std::vector<Score> scores_;
  Rows values_;
  Rows measured_;
};

}  // namespace

std::vector<double> DrawIn(std::vector<double> values, double most) {
  const double middle = Median(values);
  const double spread = MedianAbsoluteDeviation(values);
  if (spread == 0) return values;
  for (double& value : values) value = std::clamp(value, middle - most * spread, middle + most * spread);
  return values;
}

absl::StatusOr<CommonPoints> BringToCommonPoints(const std::vector<const Curve*>& curves,
                                                 bool lower_is_better) {
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  size_t fewest = kMostPoints;
  for (const Curve* curve : curves) {
    OTT_CHECK(!curve->empty());
    low = std::max(low, curve->front().x);
    high = std::min(high, curve->back().x);
  }
  if (!(low <= high)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the runs have no point in common: one begins at %g, and one ends at %g", low, high));
  }
  CommonPoints points;
  points.num_runs = curves.size();
  points.lower_is_better = lower_is_better;
  points.x = DistinctPoints(curves, low, high);
  double width = 0;
  if (points.x.empty()) {
    for (const Curve* curve : curves) {
      const auto in_range =
          static_cast<size_t>(std::count_if(curve->begin(), curve->end(), [&](const Point& point) {
            return point.x >= low && point.x <= high;
          }));
      fewest = std::min(fewest, std::max<size_t>(in_range, 2));
    }
    width = (high - low) / static_cast<double>(fewest);
    for (size_t i = 0; i < fewest; ++i) points.x.push_back(low + (static_cast<double>(i) + 0.5) * width);
  }
  points.y.resize(curves.size() * points.x.size());
  std::vector<double> column(curves.size(), kNaN);
  std::vector<size_t> some_finite;
  for (size_t point = 0; point < points.x.size(); ++point) {
    const double x = points.x[point];
    for (size_t run = 0; run < curves.size(); ++run) {
      column[run] =
          width > 0 ? MeanBetween(*curves[run], x - width / 2, x + width / 2) : Interpolate(*curves[run], x);
    }
    SetColumn(point, column, &points);
    if (!FiniteOf(column).empty()) some_finite.push_back(point);
  }
  if (some_finite.empty()) {
    return absl::InvalidArgumentError("no run has a finite value where all have points");
  }
  if (some_finite.size() < points.x.size()) {
    CommonPoints known = points;
    known.x.clear();
    known.y.assign(curves.size() * some_finite.size(), 0);
    for (const size_t point : some_finite) known.x.push_back(points.x[point]);
    for (size_t i = 0; i < some_finite.size(); ++i) SetColumn(i, Column(points, some_finite[i]), &known);
    points = std::move(known);
  }
  SetFinite(&points);
  return points;
}

RunScores ScoreRuns(const CommonPoints& points, const std::vector<double>& stops, bool has_outliers) {
  const Deviations deviations =
      DeviationsOf(points, has_outliers ? kMostDeviationsInScores : kMostDeviations);
  const size_t size = deviations.num_points;
  double effective_points = 1;
  const Matrix correlation = ShrunkCorrelation(deviations, &effective_points);
  const double worse = points.lower_is_better ? 1 : -1;
  Scoring scoring(deviations);

  // With the correlation of the points, for small losses in what they have in common, and without it, for
  // losses that are large against what is known of it.
  const std::vector<double> lost = TemplateOfLostSteps(points, deviations);
  const bool is_learning = worse * (deviations.mean.front() - deviations.mean.back()) >= 0;
  for (const std::vector<double>& weights : {Solve(correlation, lost), lost}) {
    Score score{Shape::kSteps, 0, size - 1, kStepsShare, is_learning ? 1.0 : -1.0, 1};
    score.per_share_lost = Dot(lost.data(), weights) / kTemplateLoss;
    scoring.Add(score, weights);
  }
  if (!stops.empty()) {
    scoring.AddValues({Shape::kTarget, 0, size - 1, kTargetShare, 1, scoring.num_scores()}, stops);
  }
  // Windows by their mean, and against what the other points let expect there. Points that depend on each
  // other count as fewer.
  for (size_t length = 1; length < 2 * size; length *= 2) {
    for (size_t first = 0; first < size; first += length) {
      const size_t last = std::min(first + length, size) - 1;
      const bool is_end = first == size - 1, is_whole = last - first + 1 == size;
      std::vector<double> window(size);
      std::fill(window.begin() + static_cast<std::ptrdiff_t>(first),
                window.begin() + static_cast<std::ptrdiff_t>(last) + 1, 1.0);
      Score score{Shape::kPart, first, last, kScanShare / effective_points + (is_end ? kEndShare : 0), worse};
      score.plain = scoring.num_scores();
      scoring.Add(score, window);
      score.share = kContrastShare / static_cast<double>(size) + (is_whole ? kWholeShare : 0);
      scoring.Add(score, Solve(correlation, window));
    }
  }
  return scoring.Finish(effective_points);
}

std::vector<double> StopsAtTarget(const std::vector<const Curve*>& curves, bool lower_is_better) {
  const double sign = lower_is_better ? 1 : -1;
  std::vector<double> stops;
  double target = -std::numeric_limits<double>::infinity(), best_before = -target;
  for (const Curve* curve : curves) {
    stops.push_back(curve->back().x);
    if (!std::isfinite(curve->back().y)) return {};
    target = std::max(target, sign * curve->back().y);
    for (size_t i = 0; i + 1 < curve->size(); ++i) best_before = std::min(best_before, sign * (*curve)[i].y);
  }
  const bool all_the_same = std::all_of(stops.begin(), stops.end(), [&](double x) { return x == stops[0]; });
  if (all_the_same || !(target < best_before)) return {};
  return stops;
}

}  // namespace ott::learning
