// The distributions that verdicts are read from.
//
// This room infers: what may be concluded from samples, and how often that is wrong. It has nothing to do
// with core/stopwatch/statistics.h, which adds up durations (count, mean, percentiles) and concludes nothing.

#ifndef OTT_CORE_STATISTICS_DISTRIBUTIONS_H_
#define OTT_CORE_STATISTICS_DISTRIBUTIONS_H_

namespace ott {

// The value below which a standard normal variable is with this probability.
// REQUIRES: 0 < probability < 1.
double NormalQuantile(double probability);

// Returns the probability that a standard normal variable is below `value`.
double NormalProbability(double value);

// The same of Student's t.
// REQUIRES: 0 < probability < 1, degrees_of_freedom > 0.
double StudentTQuantile(double probability, double degrees_of_freedom);

// Returns the probability of a t that is at least as far from 0, on either side. 1 for NaN: nothing was
// learnt.
// REQUIRES: degrees_of_freedom > 0.
double StudentTTwoSidedPValue(double t, double degrees_of_freedom);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_DISTRIBUTIONS_H_
