#include "ott/dist/rank_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ott {

std::string FormatRanks(std::vector<int> ranks) {
  if (ranks.empty()) return "no rank";
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&text, first == 0 ? "" : ", ", ranks[first]);
    if (last > first) absl::StrAppend(&text, last == first + 1 ? ", " : "-", ranks[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace ott
