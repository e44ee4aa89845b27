#include "ott/core/statistics/warm_up.h"

#include <algorithm>
#include <cmath>

#include "ott/core/base/check.h"

namespace ott {

size_t WarmUpLength(const std::vector<double>& seconds) {
  constexpr size_t kFewest = 4, kFewestForBatches = 20;
  if (seconds.size() < kFewest) return 0;
  const size_t batch_size = seconds.size() < kFewestForBatches ? 1 : 5;
  std::vector<double> means(seconds.size() / batch_size);
  for (size_t i = 0; i < means.size() * batch_size; ++i) {
    OTT_CHECK(seconds[i] > 0) << seconds[i] << " seconds";
    means[i / batch_size] += std::log(seconds[i]) / static_cast<double>(batch_size);
  }
  // Shifted, so that squares do not cancel.
  const double shift = means.back();
  double sum = 0, squares = 0, best = 0;
  size_t warm_up = 0;
  for (size_t i = means.size(); i-- > 0;) {
    const double value = means[i] - shift;
    sum += value;
    squares += value * value;
    if (i > means.size() / 2) continue;
    const auto count = static_cast<double>(means.size() - i);
    const double variance_of_mean = std::max(0.0, squares - sum * sum / count) / (count * count);
    if (i == means.size() / 2 || variance_of_mean <= best) {
      best = variance_of_mean;
      warm_up = i;
    }
  }
  return warm_up * batch_size;
}

}  // namespace ott
