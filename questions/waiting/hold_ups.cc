#include "ott/questions/waiting/hold_ups.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/statistics/policy.h"

namespace ott::waiting {
namespace {

struct Lateness {
  double mean = 0;
  double deviation = 1;
};

// Returns how much later than the last of so many others one comes that is like them, if each of them has a
// standard normal time. The mean after Blom (1958); 1 / (1 + 0.77 ln n) is the variance of the last of n
// within 5 % up to ten, and too large beyond.
Lateness AfterTheLastOf(double num_others) {
  return {-NormalQuantile((num_others - 0.375) / (num_others + 0.25)),
          std::sqrt(1 + 1 / (1 + 0.77 * std::log(num_others)))};
}

double StandardError(const std::vector<double>& samples, double mean) {
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  const auto count = static_cast<double>(samples.size());
  return std::sqrt(squares / (count - 1) / count);
}

// The mean of steps in a row, which may depend on each other: of the steps as they are and of every two of
// them taken together, the larger standard error counts (Flyvbjerg and Petersen 1989).
Estimate MeanOf(const std::vector<double>& steps) {
  Estimate estimate;
  const auto count = static_cast<double>(steps.size());
  for (const double step : steps) estimate.value += step / count;
  estimate.standard_error = StandardError(steps, estimate.value);
  estimate.degrees_of_freedom = count - 1;
  if (static_cast<int64_t>(steps.size()) < 2 * kMinStepsOfHoldUp) return estimate;
  std::vector<double> pairs;
  double mean = 0;
  for (size_t i = 0; i + 1 < steps.size(); i += 2) {
    pairs.push_back((steps[i] + steps[i + 1]) / 2);
    mean += pairs.back();
  }
  const double of_pairs = StandardError(pairs, mean / static_cast<double>(pairs.size()));
  if (of_pairs > estimate.standard_error) {
    estimate.standard_error = of_pairs;
    estimate.degrees_of_freedom = static_cast<double>(pairs.size()) - 1;
  }
  return estimate;
}

}  // namespace

void HoldUpFinder::Add(const KindName& kind, int64_t step, const std::vector<int>& ranks, int last_rank,
                       int64_t next_to_last, int64_t last) {
  Kind& of_kind = kinds_[kind];
  of_kind.ranks = ranks;
  int64_t& last_came = of_kind.last_came.try_emplace(last_rank, next_to_last).first->second;
  const int64_t begin = std::max(next_to_last, last_came);
  of_kind.num_apart += begin == next_to_last;
  last_came = std::max(last_came, last);
  of_kind.intervals.push_back(
      {step, last_rank, 1e-9 * static_cast<double>(std::max<int64_t>(0, last - begin))});
}

std::map<int64_t, std::vector<const HoldUpFinder::Interval*>> HoldUpFinder::Steps(const Kind& kind,
                                                                                  bool has_steps) {
  std::map<int64_t, std::vector<const Interval*>> steps;
  const auto count = static_cast<int64_t>(kind.intervals.size());
  // A part is of several collectives.
  if (!has_steps && count < 2 * kPartsOfTrace) return steps;
  for (int64_t i = 0; i < count; ++i) {
    const Interval& interval = kind.intervals[static_cast<size_t>(i)];
    steps[has_steps ? interval.step : i * kPartsOfTrace / count].push_back(&interval);
  }
  return steps;
}

TracedHoldUps HoldUpFinder::Find(const HoldUpOptions& options) const {
  TracedHoldUps result;
  result.detectable_share = std::numeric_limits<double>::infinity();
  double hidden = 0;
  const double spread = ExpectedSpread({options.work_seconds, 0, options.watched_seconds});
  for (const auto& [name, kind] : kinds_) {
    result.most_intervals = std::max(result.most_intervals, static_cast<int64_t>(kind.intervals.size()));
    const auto steps = Steps(kind, options.has_steps);
    result.most_steps = std::max(result.most_steps, static_cast<int64_t>(steps.size()));
    if (static_cast<int64_t>(steps.size()) < kMinStepsOfHoldUp || kind.ranks.size() < 2) continue;
    const auto num_ranks = static_cast<double>(kind.ranks.size());
    const auto num_steps = static_cast<double>(steps.size());
    const double intervals_of_step = static_cast<double>(kind.num_apart) / num_steps;
    // Costs of a step, or of the trace, of which each part has its share.
    const double parts = options.has_steps ? 1 : num_steps;
    const double level = kHoldUpError / (static_cast<double>(kinds_.size()) * num_ranks);
    const double least = std::max(kHoldUpIterationShare * options.step_seconds,
                                  2 * options.clock_error_seconds * intervals_of_step * parts);
    const Lateness alike = AfterTheLastOf(num_ranks - 1);
    const double expected =
        std::hypot(alike.deviation * spread, kExpectedLateness * intervals_of_step * parts);
    TracedHoldUp most;
    double detectable = std::numeric_limits<double>::infinity();
    for (const int rank : kind.ranks) {
      std::vector<double> costs;
      double caused = 0;
      for (const auto& [unused_step, intervals] : steps) {
        double cost = 0;
        for (const Interval* interval : intervals) {
          const bool is_last = interval->last_rank == rank;
          caused += is_last ? interval->after_next * parts / num_steps : 0;
          cost += is_last ? interval->after_next : -interval->after_next / (num_ranks - 1);
        }
        costs.push_back(cost * parts);
      }
      const Estimate estimate = WithExpectedSpread(MeanOf(costs), expected);
      const double needed = estimate.IntervalAt(2 * level).high - estimate.value + alike.mean * spread;
      const double of_rank = std::max(least, needed + kPowerQuantile * estimate.standard_error);
      detectable = std::min(detectable, of_rank);
      hidden = std::max(hidden, std::min(of_rank, caused));
      if (estimate.value <= std::max({least, needed, most.seconds_per_step})) continue;
      most = {rank, name.collective, name.group, estimate.value, estimate.value / options.step_seconds};
    }
    if (most.rank >= 0) result.found.push_back(most);
    if (options.step_seconds > 0)
      result.detectable_share = std::min(result.detectable_share, detectable / options.step_seconds);
  }
  if (options.step_seconds > 0)
    result.detectable_share = std::max(result.detectable_share, hidden / options.step_seconds);
  std::stable_sort(
      result.found.begin(), result.found.end(),
      [](const TracedHoldUp& a, const TracedHoldUp& b) { return a.seconds_per_step > b.seconds_per_step; });
  return result;
}

}  // namespace ott::waiting
