// Sets of ranks that stay small where ranks are neighbours.

#ifndef OTT_DIST_COMM_RANK_SET_H_
#define OTT_DIST_COMM_RANK_SET_H_

#include <cstdint>
#include <map>
#include <vector>

namespace ott {

// Ranges of ranks. A value type.
class RankSet {
 public:
  RankSet() = default;
  // [begin, end)
  RankSet(int begin, int end) { AddRange(begin, end); }

  void Add(int rank) { AddRange(rank, rank + 1); }
  // Does nothing if end <= begin.
  void AddRange(int begin, int end);
  void Add(const RankSet& other);
  RankSet Minus(const RankSet& other) const;

  bool empty() const { return ranges_.empty(); }
  int64_t size() const;
  bool Contains(int rank) const;
  // Begin to end, ascending, neither overlapping nor touching.
  const std::map<int, int>& ranges() const { return ranges_; }
  std::vector<int> ToVector() const;

  friend bool operator==(const RankSet& a, const RankSet& b) { return a.ranges_ == b.ranges_; }
  friend bool operator!=(const RankSet& a, const RankSet& b) { return !(a == b); }

 private:
  std::map<int, int> ranges_;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_RANK_SET_H_
