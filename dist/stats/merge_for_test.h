// Merges summaries in any order.

#ifndef OTT_DIST_STATS_MERGE_FOR_TEST_H_
#define OTT_DIST_STATS_MERGE_FOR_TEST_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace ott {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }
  bool OnceIn(int times) { return Below(times) == 0; }

 private:
  std::mt19937 engine_;
};

// Merges them two at a time; some travel in between.
template <typename Summary>
Summary MergeInAnyOrder(std::vector<Summary> summaries, Random& random) {
  const auto take = [&] {
    std::swap(summaries[static_cast<size_t>(random.Below(static_cast<int>(summaries.size())))],
              summaries.back());
    Summary taken = std::move(summaries.back());
    summaries.pop_back();
    return random.OnceIn(2) ? std::move(taken) : *Summary::FromProto(taken.ToProto());
  };
  while (summaries.size() > 1) {
    Summary merged = take();
    merged.Merge(take());
    summaries.push_back(std::move(merged));
  }
  return take();
}

}  // namespace ott

#endif  // OTT_DIST_STATS_MERGE_FOR_TEST_H_
