#include "ott/core/statistics/location.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "ott/core/base/check.h"

namespace ott {

double Mean(const std::vector<double>& samples) {
  OTT_CHECK(!samples.empty()) << "nothing has no mean";
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double Median(std::vector<double> samples) {
  OTT_CHECK(!samples.empty()) << "nothing has no median";
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  const double below = *std::max_element(samples.begin(), middle);
  return below + (*middle - below) / 2;
}

double MedianAbsoluteDeviation(std::vector<double> samples) {
  const double median = Median(samples);
  for (double& sample : samples) sample = std::abs(sample - median);
  return 1.4826 * Median(std::move(samples));
}

}  // namespace ott
