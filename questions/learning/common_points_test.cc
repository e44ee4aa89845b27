// Curves at common points, and scores of them, against the definitions.

#include "ott/questions/learning/common_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/location.h"

namespace ott::learning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<const Curve*> PointersTo(const std::vector<Curve>& curves) {
  std::vector<const Curve*> pointers;
  for (const Curve& curve : curves) pointers.push_back(&curve);
  return pointers;
}

// The line through the points on both sides of x, which lies between the first and the last.
double At(const Curve& curve, double x) {
  for (size_t i = 0; i + 1 < curve.size(); ++i) {
    const Point &a = curve[i], &b = curve[i + 1];
    if (a.x <= x && x <= b.x) return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
  }
  return curve.back().y;
}

TEST(CommonPoints, RunsAreInterpolatedAtThePointsOfAll) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Curve> curves(2 + random() % 4);
    double low = 0, high = 1000;
    std::set<double> all;
    for (Curve& curve : curves) {
      const int count = 2 + static_cast<int>(random() % 6);
      std::set<int> places = {static_cast<int>(random() % 3), 17 + static_cast<int>(random() % 3)};
      while (static_cast<int>(places.size()) < count) places.insert(static_cast<int>(random() % 20));
      for (const int place : places) curve.push_back({10.0 * place, static_cast<double>(random() % 100)});
      low = std::max(low, curve.front().x);
      high = std::min(high, curve.back().x);
    }
    for (const Curve& curve : curves) {
      for (const Point& point : curve) {
        if (point.x >= low && point.x <= high) all.insert(point.x);
      }
    }
    const CommonPoints points = BringToCommonPoints(PointersTo(curves), trial % 2 == 0).value();
    EXPECT_EQ(points.num_runs, curves.size());
    EXPECT_EQ(points.lower_is_better, trial % 2 == 0);
    ASSERT_EQ(points.x, std::vector<double>(all.begin(), all.end())) << trial;
    for (size_t run = 0; run < curves.size(); ++run) {
      for (size_t i = 0; i < points.x.size(); ++i)
        EXPECT_NEAR(points.at(run, i), At(curves[run], points.x[i]), 1e-9) << trial;
    }
  }
}

TEST(CommonPoints, PointsThatAreNearlyTheSameAreOne) {
  const std::vector<Curve> curves = {{{0, 1}, {1, 2}, {2, 3}}, {{0, 1}, {1.019, 2}, {1.5, 4}, {2, 3}}};
  const CommonPoints points = BringToCommonPoints(PointersTo(curves), true).value();
  // 2 % of two thirds of 1, the usual distance.
  EXPECT_THAT(points.x, ElementsAre(0, 1, 1.019, 1.5, 2));
  const std::vector<Curve> nearer = {{{0, 1}, {1, 2}, {2, 3}}, {{0, 1}, {1.013, 2}, {1.5, 4}, {2, 3}}};
  EXPECT_THAT(BringToCommonPoints(PointersTo(nearer), true)->x, ElementsAre(0, 1, 1.5, 2));
}

TEST(CommonPoints, ManyPointsAreAveragedInWindows) {
  std::mt19937 random(2);
  for (const int num_points : {33, 100, 257}) {
    std::vector<Curve> curves(3);
    for (Curve& curve : curves) {
      const double first = static_cast<double>(random() % 5);
      for (int i = 0; i < num_points; ++i)
        curve.push_back({first + 7.0 * i / num_points * 10, static_cast<double>(random() % 100)});
    }
    // A run of fewer points sets the number of windows.
    if (num_points == 100) curves[2] = {{-1, 3}, {20, 50}, {30, 10}, {100, 1}};
    double low = -1e9, high = 1e9;
    for (const Curve& curve : curves) {
      low = std::max(low, curve.front().x);
      high = std::min(high, curve.back().x);
    }
    const CommonPoints points = BringToCommonPoints(PointersTo(curves), true).value();
    const size_t num_windows = num_points == 100 ? 2 : kMostPoints;
    ASSERT_EQ(points.x.size(), num_windows);
    const double width = (high - low) / static_cast<double>(num_windows);
    for (size_t window = 0; window < num_windows; ++window) {
      const double begin = low + width * static_cast<double>(window);
      EXPECT_NEAR(points.x[window], begin + width / 2, 1e-9);
      for (size_t run = 0; run < curves.size(); ++run) {
        double sum = 0;
        constexpr int kParts = 2000;
        for (int i = 0; i < kParts; ++i) sum += At(curves[run], begin + width * (i + 0.5) / kParts);
        EXPECT_NEAR(points.at(run, window), sum / kParts, 0.01) << num_points << " " << window;
      }
    }
  }
}

TEST(CommonPoints, WhatIsNotFiniteIsAsBadAsTheWorstRunAndLeftOutWhereAllAre) {
  const std::vector<Curve> curves = {{{0, 1}, {1, 5}, {2, kNaN}, {3, kNaN}},
                                     {{0, 2}, {1, 6}, {2, 7}, {3, kNaN}},
                                     {{0, 3}, {1, kNaN}, {2, 9}, {3, INFINITY}}};
  for (const bool lower_is_better : {true, false}) {
    const CommonPoints points = BringToCommonPoints(PointersTo(curves), lower_is_better).value();
    EXPECT_THAT(points.x, ElementsAre(0, 1, 2));
    const double first = lower_is_better ? 9 : 7, third = lower_is_better ? 6 : 5;
    EXPECT_THAT(points.y, ElementsAre(1, 5, first, 2, 6, 7, 3, third, 9));
  }
  const std::vector<Curve> none = {{{0, kNaN}, {1, 5}}, {{0, kNaN}, {0.5, kNaN}}};
  EXPECT_THAT(std::string(BringToCommonPoints(PointersTo({none[1], none[1]}), true).status().message()),
              HasSubstr("no run has a finite value"));
  const std::vector<Curve> apart = {{{0, 1}, {1, 1}}, {{2, 1}, {3, 1}}};
  EXPECT_EQ(
      BringToCommonPoints(PointersTo(apart), true).status(),
      absl::InvalidArgumentError("the runs have no point in common: one begins at 2, and one ends at 1"));
}

TEST(DrawIn, MovesWhatIsFarToItsLimit) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<double> values(1 + random() % 8);
    for (double& value : values) value = static_cast<double>(random() % 10) * (random() % 8 == 0 ? 100 : 1);
    const double limit = 3 * MedianAbsoluteDeviation(values);
    const std::vector<double> drawn = DrawIn(values, 3);
    for (size_t i = 0; i < values.size(); ++i) {
      const double off = values[i] - Median(values);
      const double moved = limit == 0 ? off : std::copysign(std::min(std::abs(off), limit), off);
      EXPECT_NEAR(drawn[i], Median(values) + moved, 1e-9) << trial;
    }
  }
}

TEST(StopsAtTarget, ARunEndsWhereItIsFirstAsGoodAsAllAtTheirEnds) {
  std::mt19937 random(4);
  int num_found = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const bool lower_is_better = trial % 2 == 0;
    std::vector<Curve> curves(2 + random() % 2);
    for (Curve& curve : curves) {
      const int count = 2 + static_cast<int>(random() % 3);
      for (int x = 0; x < count; ++x) {
        const int y = x + 1 < count ? 3 + static_cast<int>(random() % 6) : static_cast<int>(random() % 5);
        curve.push_back({static_cast<double>(x), static_cast<double>(lower_is_better ? y : -y)});
      }
      if (random() % 10 == 0) curve.back().y = kNaN;
    }
    std::vector<double> stops;
    bool is_target = true;
    for (const Curve& curve : curves) stops.push_back(curve.back().x);
    for (const Curve& ended : curves) {
      is_target = is_target && std::isfinite(ended.back().y);
      for (const Curve& other : curves) {
        for (size_t i = 0; i + 1 < other.size(); ++i) {
          is_target =
              is_target && (lower_is_better ? ended.back().y < other[i].y : ended.back().y > other[i].y);
        }
      }
    }
    is_target = is_target &&
                *std::min_element(stops.begin(), stops.end()) < *std::max_element(stops.begin(), stops.end());
    num_found += is_target;
    EXPECT_EQ(StopsAtTarget(PointersTo(curves), lower_is_better), is_target ? stops : std::vector<double>())
        << trial;
  }
  EXPECT_GT(num_found, 50);
}

// Solves matrix x = right by elimination.
std::vector<double> SolutionOf(std::vector<std::vector<double>> matrix, std::vector<double> right) {
  for (size_t i = 0; i < right.size(); ++i) {
    for (size_t row = 0; row < right.size(); ++row) {
      if (row == i) continue;
      const double times = matrix[row][i] / matrix[i][i];
      for (size_t column = 0; column < right.size(); ++column)
        matrix[row][column] -= times * matrix[i][column];
      right[row] -= times * right[i];
    }
  }
  for (size_t i = 0; i < right.size(); ++i) right[i] /= matrix[i][i];
  return right;
}

// Scores are sums of deviations from the mean curve: of points that are independent, or that correlate as the
// runs show, shrunk as far as each correlation is uncertain.
TEST(ScoreRuns, AreSumsOfDeviations) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 50; ++trial) {
    CommonPoints points;
    points.num_runs = 4 + trial % 5;
    points.lower_is_better = trial % 2 == 0;
    const size_t size = 2 + random() % 6;
    const double slope = trial % 4 < 2 ? 1 : -1;
    const bool has_outliers = trial % 5 == 0;
    for (size_t i = 0; i < size; ++i) points.x.push_back(100.0 * static_cast<double>(i + 1));
    for (size_t i = 0; i < points.num_runs * size; ++i)
      points.y.push_back(slope * static_cast<double>(i % size) + 0.1 * normal(random));
    std::vector<double> stops;
    if (trial % 3 == 0) {
      for (size_t run = 0; run < points.num_runs; ++run) stops.push_back(static_cast<double>(random() % 100));
    }
    const RunScores scores = ScoreRuns(points, stops, has_outliers);
    const size_t num_scores = scores.scores.size();
    ASSERT_EQ(scores.values.size(), num_scores * points.num_runs);
    // Values that are far away are drawn in for tests, and are as they are for how much.
    std::vector<double> drawn = points.y, mean(size), spread(size);
    for (size_t i = 0; i < size; ++i) {
      std::vector<double> column;
      for (size_t run = 0; run < points.num_runs; ++run) column.push_back(points.at(run, i));
      column = DrawIn(column, has_outliers ? 3 : kMostDeviations);
      mean[i] = Mean(column);
      double squares = 0;
      for (const double value : column) squares += std::pow(value - mean[i], 2);
      spread[i] = std::sqrt(squares / static_cast<double>(points.num_runs - 1));
      for (size_t run = 0; run < points.num_runs; ++run) drawn[run * size + i] = column[run];
    }
    const auto z = [&](const std::vector<double>& y, size_t run, size_t i) {
      return (y[run * size + i] - mean[i]) / spread[i];
    };
    // A run that loses a twentieth of its steps is, at each point, where the mean was so many steps before;
    // before the first point the mean goes on as it began.
    std::vector<double> lost;
    for (size_t i = 0; i < size; ++i) {
      const double before = 0.05 * points.x[i];
      const size_t left = i == 0 ? 0 : i - 1;
      lost.push_back(-before * (mean[left + 1] - mean[left]) / 100 / spread[i]);
    }
    const double n = static_cast<double>(points.num_runs), count = static_cast<double>(size);
    std::vector<std::vector<double>> correlation(size, std::vector<double>(size, 1));
    double variances = 0, squares_of_correlations = 0;
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < i; ++j) {
        std::vector<double> products;
        for (size_t run = 0; run < points.num_runs; ++run)
          products.push_back(z(drawn, run, i) * z(drawn, run, j));
        for (const double product : products)
          variances += n / std::pow(n - 1, 3) * std::pow(product - Mean(products), 2);
        correlation[i][j] = correlation[j][i] = Mean(products) * n / (n - 1);
        squares_of_correlations += std::pow(correlation[i][j], 2);
      }
    }
    const double shrinkage = std::min(1.0, std::max(0.1, variances / squares_of_correlations));
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) correlation[i][j] *= i == j ? 1 : 1 - shrinkage;
    }
    const double effective = count * count / (count + 2 * squares_of_correlations);
    EXPECT_NEAR(scores.effective_points, effective, 1e-6);
    const double worse = points.lower_is_better ? 1 : -1;
    EXPECT_EQ(scores.scores[1].shape, Shape::kSteps);
    EXPECT_EQ(scores.scores[0].plain, 1);
    EXPECT_EQ(scores.scores[1].worse, worse * (mean.front() - mean.back()) >= 0 ? 1 : -1) << trial;
    double per_share = 0;
    for (size_t i = 0; i < size; ++i) per_share += lost[i] * lost[i] / 0.05;
    EXPECT_NEAR(scores.scores[1].per_share_lost, per_share, 1e-6 * per_share) << trial;
    std::set<std::pair<size_t, size_t>> windows;
    for (size_t score = 0; score < num_scores; ++score) {
      const Score& what = scores.scores[score];
      const bool is_plain = what.plain == score, is_part = what.shape == Shape::kPart;
      const double of_part = is_plain ? 0.5 / effective + (what.first == size - 1 ? 0.2 : 0)
                                      : 0.05 / count + (what.last - what.first == size - 1 ? 0.05 : 0);
      EXPECT_NEAR(what.share, is_part ? of_part : what.shape == Shape::kSteps ? 0.3 : 0.1, 1e-6);
      if (what.shape == Shape::kPart) {
        EXPECT_EQ(what.worse, worse);
        windows.insert({what.first, what.last});
      }
      std::vector<double> weights(size);
      for (size_t i = what.first; i <= what.last; ++i) weights[i] = is_part ? 1 : lost[i];
      if (!is_plain) weights = SolutionOf(correlation, weights);
      for (size_t run = 0; run < points.num_runs; ++run) {
        for (const bool is_measured : {false, true}) {
          const std::vector<double>& y = is_measured ? points.y : drawn;
          double expected = what.shape == Shape::kTarget ? stops[run] : 0;
          for (size_t i = 0; i < size && what.shape != Shape::kTarget; ++i)
            expected += weights[i] * z(y, run, i);
          const double value = (is_measured ? scores.measured : scores.values)[run * num_scores + score];
          EXPECT_NEAR(value, expected, 1e-6) << trial << " " << score;
        }
      }
    }
    // Windows of one point, of two, of four and so on, up to the whole.
    std::set<std::pair<size_t, size_t>> expected_windows;
    for (size_t length = 1; length < 2 * size; length *= 2) {
      for (size_t first = 0; first < size; first += length)
        expected_windows.insert({first, std::min(first + length, size) - 1});
    }
    EXPECT_EQ(windows, expected_windows) << trial;
  }
}

}  // namespace
}  // namespace ott::learning
