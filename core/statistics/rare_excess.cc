#include "ott/core/statistics/rare_excess.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ott/core/statistics/location.h"
#include "ott/core/statistics/policy.h"

namespace ott {

bool IsHiccup(double late_seconds, double iteration_seconds) {
  return late_seconds >= std::max(kHiccupSeconds, kHiccupIterationShare * iteration_seconds);
}

bool IsRepeated(const std::vector<double>& hiccups, double all_late_seconds, int64_t num_iterations,
                double iteration_seconds) {
  const auto count = static_cast<int64_t>(hiccups.size());
  const auto iterations = static_cast<double>(num_iterations);
  if (count < kMinHiccups || static_cast<double>(count) > kRareShare * iterations) return false;
  const double longest = *std::max_element(hiccups.begin(), hiccups.end());
  const double others = std::accumulate(hiccups.begin(), hiccups.end(), 0.0) - longest;
  return 2 * others >= all_late_seconds - longest &&
         others >= kHiccupTimeShare * iterations * iteration_seconds;
}

bool IsMoreThanChance(const std::vector<double>& hiccups, const std::vector<double>& others,
                      int64_t num_processes) {
  const double shortest = kHiccupOfOthersShare * Median(hiccups);
  const auto count_long = [shortest](const std::vector<double>& seconds) {
    return std::count_if(seconds.begin(), seconds.end(),
                         [shortest](double late) { return late >= shortest; });
  };
  const int64_t num_hiccups = count_long(hiccups);
  const int64_t all = num_hiccups + count_long(others);
  // The binomial's upper tail, for whichever process has most.
  const auto processes = static_cast<double>(num_processes);
  double tail = 0;
  for (int64_t count = num_hiccups; count <= all; ++count) {
    const auto k = static_cast<double>(count);
    const auto n = static_cast<double>(all);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                     n * std::log(processes) + (n - k) * std::log(processes - 1));
  }
  return processes * tail <= kHiccupError;
}

bool IsRegular(const std::vector<int64_t>& iterations) {
  std::vector<double> distances;
  for (size_t i = 1; i < iterations.size(); ++i)
    distances.push_back(static_cast<double>(iterations[i] - iterations[i - 1]));
  if (distances.size() < kMinDistances) return false;
  const auto [least, most] = std::minmax_element(distances.begin(), distances.end());
  return *most - *least <= kAlikeDistances * *least;
}

}  // namespace ott
