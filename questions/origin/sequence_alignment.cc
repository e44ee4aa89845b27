#include "ott/questions/origin/sequence_alignment.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>

namespace ott::origin {
namespace {

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
using Sequence = absl::Span<const uint32_t>;

// Elements that are in one of the sequences only. Time and memory grow with its square.
constexpr int kMaxDistance = 1000;

// Holds how far the best path on each diagonal (index in a less that in b) has come in a.
class Furthest {
 public:
  explicit Furthest(int limit) : offset_(limit + 1), reached_(2 * limit + 3, 0) {}
  int& operator[](int diagonal) { return reached_[offset_ + diagonal]; }

  // Returns those of the diagonals that a step of this distance looks at; diagonal k is element k + distance
  // + 1.
  std::vector<int> Around(int distance) const {
    return {reached_.begin() + offset_ - distance - 1, reached_.begin() + offset_ + distance + 2};
  }

 private:
  int offset_;
  std::vector<int> reached_;
};

// Back along the path that came to (x, y).
Pairs PairsOnPath(int x, int y, const std::vector<std::vector<int>>& history) {
  Pairs pairs;
  for (int d = static_cast<int>(history.size()) - 1; d > 0; --d) {
    const auto at = [&](int diagonal) { return history[d][diagonal + d + 1]; };
    const int k = x - y;
    const bool down = k == -d || (k != d && at(k - 1) + 1 <= at(k + 1));
    const int previous = down ? k + 1 : k - 1;
    const int start_x = down ? at(previous) : at(previous) + 1;
    for (; x > start_x; --x, --y) pairs.emplace_back(x - 1, y - 1);
    x = at(previous);
    y = x - previous;
  }
  for (; x > 0; --x, --y) pairs.emplace_back(x - 1, y - 1);
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

// Returns nullopt if more than kMaxDistance elements are in one sequence only.
std::optional<Pairs> AlignByMyers(Sequence a, Sequence b) {
  const auto size_a = static_cast<int>(a.size());
  const auto size_b = static_cast<int>(b.size());
  const int limit = std::min(kMaxDistance, size_a + size_b);
  Furthest furthest(limit);
  std::vector<std::vector<int>> history;
  for (int distance = 0; distance <= limit; ++distance) {
    history.push_back(furthest.Around(distance));
    for (int k = -distance; k <= distance; k += 2) {
      const int from_below = furthest[k + 1];
      const int from_left = furthest[k - 1] + 1;
      int x = k == -distance || (k != distance && from_left <= from_below) ? from_below : from_left;
      while (x < size_a && x - k < size_b && a[x] == b[x - k]) ++x;
      furthest[k] = x;
      if (x >= size_a && x - k >= size_b) return PairsOnPath(x, x - k, history);
    }
  }
  return std::nullopt;
}

// The n-th of each value, as far as order allows: a longest increasing subsequence.
Pairs AlignByOccurrence(Sequence a, Sequence b) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> places_in_b;
  for (uint32_t j = 0; j < b.size(); ++j) places_in_b[b[j]].push_back(j);
  std::unordered_map<uint32_t, size_t> next;
  Pairs candidates;
  for (uint32_t i = 0; i < a.size(); ++i) {
    const auto places = places_in_b.find(a[i]);
    if (places == places_in_b.end()) continue;
    const size_t occurrence = next[a[i]]++;
    if (occurrence < places->second.size()) candidates.emplace_back(i, places->second[occurrence]);
  }
  // tails[n]: the candidate with the smallest place in b that ends a subsequence of n + 1.
  std::vector<size_t> tails;
  std::vector<int64_t> before(candidates.size(), -1);
  for (size_t c = 0; c < candidates.size(); ++c) {
    const auto place =
        std::lower_bound(tails.begin(), tails.end(), candidates[c].second,
                         [&](size_t tail, uint32_t value) { return candidates[tail].second < value; });
    if (place != tails.begin()) before[c] = static_cast<int64_t>(*(place - 1));
    if (place == tails.end()) {
      tails.push_back(c);
    } else {
      *place = c;
    }
  }
  Pairs pairs;
  for (int64_t c = tails.empty() ? -1 : static_cast<int64_t>(tails.back()); c >= 0; c = before[c]) {
    pairs.push_back(candidates[c]);
  }
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace

Pairs AlignSequences(Sequence a, Sequence b, bool from_end) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t prefix = 0;
  size_t suffix = 0;
  const auto take_prefix = [&] {
    while (prefix + suffix < shorter && a[prefix] == b[prefix]) ++prefix;
  };
  const auto take_suffix = [&] {
    while (prefix + suffix < shorter && a[a.size() - 1 - suffix] == b[b.size() - 1 - suffix]) ++suffix;
  };
  if (from_end) take_suffix();
  take_prefix();
  take_suffix();
  Pairs pairs;
  for (uint32_t i = 0; i < prefix; ++i) pairs.emplace_back(i, i);
  const Sequence middle_a = a.subspan(prefix, a.size() - suffix - prefix);
  const Sequence middle_b = b.subspan(prefix, b.size() - suffix - prefix);
  if (!middle_a.empty() && !middle_b.empty()) {
    std::optional<Pairs> middle = AlignByMyers(middle_a, middle_b);
    if (!middle) middle = AlignByOccurrence(middle_a, middle_b);
    for (const auto& [i, j] : *middle) {
      pairs.emplace_back(static_cast<uint32_t>(prefix + i), static_cast<uint32_t>(prefix + j));
    }
  }
  for (size_t i = suffix; i > 0; --i) {
    pairs.emplace_back(static_cast<uint32_t>(a.size() - i), static_cast<uint32_t>(b.size() - i));
  }
  return pairs;
}

}  // namespace ott::origin
