// Robust location and spread of samples: a few of them do not move either.

#ifndef OTT_CORE_STATISTICS_LOCATION_H_
#define OTT_CORE_STATISTICS_LOCATION_H_

#include <vector>

namespace ott {

// REQUIRES: samples is not empty.
double Mean(const std::vector<double>& samples);

// The middle one, or the mean of the two in the middle.
// REQUIRES: samples is not empty and holds no NaN.
double Median(std::vector<double> samples);

// Returns the median distance from the median times 1.4826, which is the standard deviation where the samples
// are normal (Hampel 1974). 0 if more than half of the samples are equal. REQUIRES: as of Median().
double MedianAbsoluteDeviation(std::vector<double> samples);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_LOCATION_H_
