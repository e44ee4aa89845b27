#include "ott/core/statistics/rare_excess.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ott {
namespace {

// Of the iterations: what happens in more of them is not rare.
constexpr double kFew = 0.2;

}  // namespace

bool IsHiccup(double late_seconds, double iteration_seconds) {
  return late_seconds >= std::max(kHiccupSeconds, kHiccupIterationShare * iteration_seconds);
}

bool IsRepeated(const std::vector<double>& hiccups, double all_late_seconds, int64_t num_iterations,
                double iteration_seconds) {
  const auto count = static_cast<int64_t>(hiccups.size());
  const auto iterations = static_cast<double>(num_iterations);
  if (count < kMinHiccups || static_cast<double>(count) > kFew * iterations) return false;
  const double longest = *std::max_element(hiccups.begin(), hiccups.end());
  const double others = std::accumulate(hiccups.begin(), hiccups.end(), 0.0) - longest;
  return 2 * others >= all_late_seconds - longest &&
         others >= kHiccupTimeShare * iterations * iteration_seconds;
}

bool IsMoreThanChance(int64_t num_hiccups, int64_t all, int64_t num_processes) {
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

}  // namespace ott
