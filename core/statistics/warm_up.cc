#include "ott/core/statistics/warm_up.h"

#include <cmath>
#include <limits>

#include "ott/core/base/check.h"

namespace ott {

size_t WarmUpLength(const std::vector<double>& seconds) {
  constexpr size_t kFewest = 4, kFewestForBatches = 20;
  if (seconds.size() < kFewest) return 0;
  const size_t batch_size = seconds.size() < kFewestForBatches ? 1 : 5;
  // Means of batches but for a factor, which changes nothing.
  std::vector<double> batches(seconds.size() / batch_size);
  for (size_t i = 0; i < batches.size() * batch_size; ++i) {
    OTT_CHECK(seconds[i] > 0) << seconds[i] << " seconds";
    batches[i / batch_size] += std::log(seconds[i]);
  }
  // Shifted, so that squares do not cancel.
  const double shift = batches.back();
  double sum = 0, squares = 0, best = std::numeric_limits<double>::infinity();
  size_t warm_up = 0;
  for (size_t i = batches.size(); i-- > 0;) {
    const double value = batches[i] - shift;
    sum += value;
    squares += value * value;
    const auto count = static_cast<double>(batches.size() - i);
    const double variance_of_mean = (squares - sum * sum / count) / (count * count);
    if (i <= batches.size() / 2 && variance_of_mean <= best) {
      best = variance_of_mean;
      warm_up = i;
    }
  }
  return warm_up * batch_size;
}

}  // namespace ott
