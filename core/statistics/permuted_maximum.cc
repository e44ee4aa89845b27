#include "ott/core/statistics/permuted_maximum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "ott/core/base/check.h"

namespace ott {
namespace {

// So many choices are gone through one by one, and so many are drawn where there are more.
constexpr double kMostChoices = 5000;
constexpr size_t kFewestDraws = 999;
// Additions in all, which keep thousands of runs within a second.
constexpr double kMostAdditions = 4e8;

double NumChoices(size_t num_runs, size_t size) {
  double choices = 1;
  for (size_t i = 1; i <= size; ++i) {
    choices *= static_cast<double>(num_runs - size + i) / static_cast<double>(i);
  }
  return std::round(choices);
}

// Scores about their mean, with their sums.
struct CenteredScores {
  size_t num_runs = 0;
  size_t num_scores = 0;
  std::vector<double> values;
  std::vector<double> squares;  // sum over all runs
};

CenteredScores Center(const std::vector<double>& scores, size_t num_runs) {
  CenteredScores centered{num_runs, scores.size() / num_runs, scores, {}};
  centered.squares.resize(centered.num_scores);
  for (size_t score = 0; score < centered.num_scores; ++score) {
    double sum = 0;
    for (size_t run = 0; run < num_runs; ++run) sum += scores[run * centered.num_scores + score];
    for (size_t run = 0; run < num_runs; ++run) {
      double& value = centered.values[run * centered.num_scores + score];
      value -= sum / static_cast<double>(num_runs);
      centered.squares[score] += value * value;
    }
    // Equal scores have no spread but that of rounding.
    const double rounding = 1e-12 * scores[score];
    if (centered.squares[score] <= rounding * rounding * static_cast<double>(num_runs))
      centered.squares[score] = 0;
  }
  return centered;
}

// The t of each score where these runs are one group: its mean less that of the others.
void ComputeT(const CenteredScores& scores, const std::vector<size_t>& group, std::vector<double>* t) {
  const size_t num_scores = scores.num_scores;
  std::vector<double> sums(2 * num_scores);
  double* const sum = sums.data();
  double* const square = sum + num_scores;
  for (const size_t run : group) {
    const double* const row = scores.values.data() + run * num_scores;
    for (size_t score = 0; score < num_scores; ++score) {
      sum[score] += row[score];
      square[score] += row[score] * row[score];
    }
  }
  const double size = static_cast<double>(group.size());
  const double rest = static_cast<double>(scores.num_runs) - size;
  const auto variance = [](double squares, double mean, double count) {
    return (squares - count * mean * mean) / (count - 1);
  };
  t->resize(num_scores);
  for (size_t score = 0; score < num_scores; ++score) {
    const double mean = sum[score] / size, other = -sum[score] / rest;
    const double own = variance(square[score], mean, size);
    const double others = variance(scores.squares[score] - square[score], other, rest);
    // The group is the smaller one: if it is one run, the others tell how that varies.
    const double squared_error = (size > 1 ? own : others) / size + others / rest;
    // Groups without any spread are told apart by what differs; the floor keeps their t finite.
    const double floor = 1e-18 * scores.squares[score];
    (*t)[score] = scores.squares[score] > 0 ? (mean - other) / std::sqrt(std::max(squared_error, floor)) : 0;
  }
}

void ForEachChoice(size_t num_runs, size_t size, double additions_of_each,
                   const std::function<void(const std::vector<size_t>&)>& visit) {
  std::vector<size_t> group(size);
  if (NumChoices(num_runs, size) <= kMostChoices) {
    std::iota(group.begin(), group.end(), size_t{0});
    while (true) {
      visit(group);
      size_t at = size;
      while (at > 0 && group[at - 1] == num_runs - size + at - 1) --at;
      if (at == 0) return;
      std::iota(group.begin() + static_cast<std::ptrdiff_t>(at - 1), group.end(), group[at - 1] + 1);
    }
  }
  std::mt19937_64 random(38);
  std::vector<size_t> runs(num_runs);
  std::iota(runs.begin(), runs.end(), size_t{0});
  const size_t draws = static_cast<size_t>(
      std::clamp(kMostAdditions / additions_of_each, double{kFewestDraws}, kMostChoices - 1));
  for (size_t draw = 0; draw < draws; ++draw) {
    for (size_t i = 0; i < size; ++i) std::swap(runs[i], runs[i + random() % (num_runs - i)]);
    group.assign(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(size));
    visit(group);
  }
}

}  // namespace

PermutedMaximum PermuteMaximum(const std::vector<double>& scores, size_t num_runs, size_t num_a,
                               const std::vector<double>& scales, double error) {
  OTT_CHECK(num_runs >= 3 && num_a > 0 && num_a < num_runs) << num_a << " of " << num_runs << " runs";
  OTT_CHECK(scores.size() == num_runs * scales.size()) << scores.size() << " scores";
  OTT_CHECK(error > 0 && error < 1) << "error " << error;
  const CenteredScores centered = Center(scores, num_runs);
  const auto value_of = [&](const std::vector<double>& t) {
    double value = 0;
    for (size_t i = 0; i < t.size(); ++i) value = std::max(value, std::abs(t[i]) / scales[i]);
    return value;
  };
  // The smaller group is the cheaper one to add up; t only changes its sign.
  const size_t num_b = num_runs - num_a;
  const bool is_b = num_b <= num_a;
  std::vector<size_t> group(is_b ? num_b : num_a);
  std::iota(group.begin(), group.end(), is_b ? num_a : 0);
  PermutedMaximum found;
  ComputeT(centered, group, &found.t);
  if (!is_b) {
    for (double& t : found.t) t = -t;
  }
  found.value = value_of(found.t);
  for (size_t i = 0; i < scales.size(); ++i) {
    if (std::abs(found.t[i]) / scales[i] == found.value) found.largest = i;
  }
  std::vector<double> values, t;
  ForEachChoice(num_runs, group.size(), static_cast<double>(group.size() * scales.size()),
                [&](const std::vector<size_t>& choice) {
                  ComputeT(centered, choice, &t);
                  values.push_back(value_of(t));
                });
  // Random choices do not have the one that was made among them.
  if (NumChoices(num_runs, group.size()) > kMostChoices) values.push_back(found.value);
  const double count = static_cast<double>(values.size());
  const double at_least = found.value * (1 - 1e-9);
  found.p_value = static_cast<double>(std::count_if(values.begin(), values.end(),
                                                    [&](double value) { return value >= at_least; })) /
                  count;
  std::sort(values.begin(), values.end(), std::greater<double>());
  const size_t rejected = static_cast<size_t>(error * count + 1e-9);
  found.critical = rejected > 0 ? values[rejected] : std::numeric_limits<double>::infinity();
  return found;
}

double SmallestPermutedPValue(size_t num_a, size_t num_b) {
  OTT_CHECK(num_a > 0 && num_b > 0) << num_a << " and " << num_b << " runs";
  // Groups of one size have the same |t| when they are swapped.
  const double same = num_a == num_b ? 2 : 1;
  const double choices = NumChoices(num_a + num_b, num_a);
  return choices <= kMostChoices ? same / choices : 1 / kMostChoices;
}

}  // namespace ott
