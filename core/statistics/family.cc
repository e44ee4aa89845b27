#include "ott/core/statistics/family.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "ott/core/base/check.h"

namespace ott {

std::vector<double> HolmAdjusted(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const double p = p_values[order[i]];
    OTT_CHECK(p >= 0 && p <= 1) << "p-value " << p;
    largest = std::max(largest, std::min(1.0, p * static_cast<double>(order.size() - i)));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace ott
