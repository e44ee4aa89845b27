#include "ott/core/statistics/mean_difference.h"

#include <algorithm>
#include <cmath>

#include "ott/core/base/check.h"
#include "ott/core/statistics/distributions.h"

namespace ott {
namespace {

// Samples by what counts of them.
struct Group {
  double size = 0;
  double mean = 0;
  double variance = 0;  // of one sample
};

Group GroupOf(const std::vector<double>& samples) {
  OTT_CHECK(samples.size() >= 2) << samples.size() << " samples";
  Group group = {static_cast<double>(samples.size())};
  // About the first, so that equal samples do not vary, which a rounded mean does not ensure.
  for (const double sample : samples) group.mean += (sample - samples[0]) / group.size;
  group.mean += samples[0];
  for (const double sample : samples) group.variance += (sample - group.mean) * (sample - group.mean);
  group.variance /= group.size - 1;
  return group;
}

Estimate Difference(const Group& a, const Group& b) {
  const double variance_a = a.variance / a.size, variance_b = b.variance / b.size;
  Estimate estimate;
  estimate.value = b.mean - a.mean;
  const double variance = variance_a + variance_b;
  if (variance == 0) return estimate;
  estimate.standard_error = std::sqrt(variance);
  // Both are shares of the variance, since squares of small variances vanish.
  const double share_a = variance_a / variance, share_b = variance_b / variance;
  estimate.degrees_of_freedom = 1 / (share_a * share_a / (a.size - 1) + share_b * share_b / (b.size - 1));
  return estimate;
}

}  // namespace

Interval Estimate::IntervalAt(double error) const {
  // With few degrees of freedom the quantile may exceed what a double holds, and 0 times that is no number.
  const double half_width =
      standard_error == 0 ? 0 : StudentTQuantile(1 - error / 2, degrees_of_freedom) * standard_error;
  return {value - half_width, value + half_width};
}

double Estimate::PValue() const { return StudentTTwoSidedPValue(value / standard_error, degrees_of_freedom); }

Estimate WelchDifference(const std::vector<double>& a, const std::vector<double>& b) {
  return Difference(GroupOf(a), GroupOf(b));
}

Estimate CautiousDifference(const std::vector<double>& a, const std::vector<double>& b) {
  Group of_a = GroupOf(a), of_b = GroupOf(b);
  if (a.size() != b.size()) {
    Group& smaller = a.size() < b.size() ? of_a : of_b;
    smaller.variance = std::max(of_a.variance, of_b.variance);
  }
  return Difference(of_a, of_b);
}

}  // namespace ott
