#include "ott/dist/comm/rank_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ott/core/base/text_table.h"

namespace ott {
namespace {

constexpr int kMaxParts = 16;

}  // namespace

std::string FormatRank(int rank, std::string_view host) {
  return absl::StrCat("rank ", rank, " (", EscapeControlCharacters(host), ")");
}

std::string FormatRanks(std::vector<int> ranks) {
  if (ranks.empty()) return "no rank";
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int num_parts = 0;
  for (size_t first = 0; first < ranks.size();) {
    if (++num_parts > kMaxParts) return absl::StrCat(text, ", ... (", ranks.size(), " in all)");
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&text, first == 0 ? "" : ", ", ranks[first]);
    if (last > first) absl::StrAppend(&text, last == first + 1 ? ", " : "-", ranks[last]);
    first = last + 1;
  }
  return text;
}

std::string FormatRanksAmong(const std::vector<int>& ranks, int num_ranks, int world_size) {
  if (num_ranks >= world_size) return absl::StrCat("on all ", world_size, " ranks");
  if (num_ranks == 1) return absl::StrCat("on ", FormatRanks(ranks), " alone");
  if (num_ranks > static_cast<int>(ranks.size())) {
    return absl::StrCat("on ", num_ranks, " of ", world_size, " ranks, rank ", ranks.front(), " the first");
  }
  return absl::StrCat("on ", FormatRanks(ranks), " of ", world_size);
}

}  // namespace ott
