#include "ott/core/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace ott {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(std::string_view name, const std::vector<std::string>& names) {
  std::string nearest;
  size_t smallest = 0;
  for (const std::string& candidate : names) {
    const size_t distance = EditDistance(name, candidate);
    if (2 * distance > std::max(name.size(), candidate.size())) continue;
    if (!nearest.empty() && distance >= smallest) continue;
    nearest = candidate;
    smallest = distance;
  }
  return nearest;
}

}  // namespace ott
