// By how much two groups of independent samples differ in their mean, with how sure that is.
//
// A sample is what is independent of the others: a process, not an iteration of one. Durations are given as
// their logarithms, so that a difference is a ratio: exp(difference) = B / A.
//
//   const Estimate slower = WelchDifference(log_seconds_a, log_seconds_b);
//   const Interval ratio = slower.IntervalAt(0.01);  // of 100 such intervals 99 hold the true difference
//   printf("B / A = %g (%g to %g)", exp(slower.value), exp(ratio.low), exp(ratio.high));

#ifndef OTT_CORE_STATISTICS_MEAN_DIFFERENCE_H_
#define OTT_CORE_STATISTICS_MEAN_DIFFERENCE_H_

#include <vector>

#include "ott/core/statistics/interval.h"

namespace ott {

// (value - truth) / standard_error is taken to have Student's t distribution.
struct Estimate {
  double value = 0;
  // 0 if the samples do not vary at all: then the estimate is taken to be exact.
  double standard_error = 0;
  double degrees_of_freedom = 1;

  // The interval that misses the truth with probability `error`, half of it on either side.
  // REQUIRES: 0 < error < 1.
  Interval IntervalAt(double error) const;

  // Returns the two-sided p-value of the hypothesis that the truth is 0.
  double PValue() const;
};

// mean(b) - mean(a) after Welch (1947): the groups may vary by different amounts and have different sizes.
// REQUIRES: at least two samples each.
Estimate WelchDifference(const std::vector<double>& a, const std::vector<double>& b);

// The same where the smaller group is taken to vary by no less than the larger: of a kind that has two modes,
// few samples may all be in one.
Estimate CautiousDifference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_MEAN_DIFFERENCE_H_
