#include "ott/core/statistics/mean_difference.h"

#include <cmath>
#include <cstddef>

#include "ott/core/base/check.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/location.h"

namespace ott {
namespace {

double SquaredDeviations(const std::vector<double>& samples, double from) {
  double sum = 0;
  for (const double sample : samples) sum += (sample - from) * (sample - from);
  return sum;
}

}  // namespace

Interval Estimate::IntervalAt(double error) const {
  // With few degrees of freedom the quantile may exceed what a double holds, and 0 times that is no number.
  const double half_width =
      standard_error == 0 ? 0 : StudentTQuantile(1 - error / 2, degrees_of_freedom) * standard_error;
  return {value - half_width, value + half_width};
}

double Estimate::PValue() const {
  if (standard_error == 0) return value == 0 ? 1 : 0;
  return StudentTTwoSidedPValue(value / standard_error, degrees_of_freedom);
}

Estimate WelchDifference(const std::vector<double>& a, const std::vector<double>& b) {
  OTT_CHECK(a.size() >= 2 && b.size() >= 2) << a.size() << " and " << b.size() << " samples";
  const auto variance_of_mean = [](const std::vector<double>& samples, double mean) {
    const auto count = static_cast<double>(samples.size());
    return SquaredDeviations(samples, mean) / (count - 1) / count;
  };
  const double mean_a = Mean(a), mean_b = Mean(b);
  const double variance_a = variance_of_mean(a, mean_a), variance_b = variance_of_mean(b, mean_b);
  Estimate estimate;
  estimate.value = mean_b - mean_a;
  const double variance = variance_a + variance_b;
  if (variance == 0) return estimate;
  estimate.standard_error = std::sqrt(variance);
  // Both are shares of the variance, since squares of small variances vanish.
  const double share_a = variance_a / variance, share_b = variance_b / variance;
  estimate.degrees_of_freedom = 1 / (share_a * share_a / static_cast<double>(a.size() - 1) +
                                     share_b * share_b / static_cast<double>(b.size() - 1));
  return estimate;
}

}  // namespace ott
