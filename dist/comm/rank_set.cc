#include "ott/dist/comm/rank_set.h"

#include <algorithm>
#include <iterator>

namespace ott {

void RankSet::AddRange(int begin, int end) {
  if (end <= begin) return;
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ranges_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ranges_.erase(next);
  }
  ranges_.emplace(begin, end);
}

void RankSet::Add(const RankSet& other) {
  for (const auto& [begin, end] : other.ranges_) AddRange(begin, end);
}

RankSet RankSet::Minus(const RankSet& other) const {
  RankSet left;
  for (const auto& [first, end] : ranges_) {
    int begin = first;
    auto hole = other.ranges_.upper_bound(begin);
    if (hole != other.ranges_.begin()) --hole;
    for (; hole != other.ranges_.end() && hole->first < end; ++hole) {
      left.AddRange(begin, hole->first);
      begin = std::max(begin, hole->second);
    }
    left.AddRange(begin, end);
  }
  return left;
}

int64_t RankSet::size() const {
  int64_t size = 0;
  for (const auto& [begin, end] : ranges_) size += end - begin;
  return size;
}

bool RankSet::Contains(int rank) const {
  const auto next = ranges_.upper_bound(rank);
  return next != ranges_.begin() && std::prev(next)->second > rank;
}

std::vector<int> RankSet::ToVector() const {
  std::vector<int> ranks;
  for (const auto& [begin, end] : ranges_) {
    for (int rank = begin; rank < end; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace ott
