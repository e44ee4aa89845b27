// Blocks of a rank against the definition: what each moment of a block belongs to.

#include "questions/saved/block_pieces.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::saved {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMaxTime = int64_t{1} << 60;
constexpr int kNumNames = 5, kObserver = 4;

struct Interval {
  int32_t name = 0;
  int64_t start = 0;
  int64_t end = 0;
};

// Names 2 and 3 are collective; 4 is the observer, and collective as well.
IterationSample SampleOf(const std::vector<Interval>& intervals, const std::vector<int64_t>& iterations) {
  IterationSample sample;
  sample.set_rank(3);
  sample.set_observer(kObserver);
  for (int name = 0; name < kNumNames; ++name) {
    sample.add_names(std::string(1, static_cast<char>('a' + name)));
    sample.add_collective(name >= 2);
  }
  IterationBlock& block = *sample.add_blocks();
  block.set_first_iteration(100);
  block.set_begin(1000);
  for (const int64_t iteration : iterations) block.add_iteration_end(iteration);
  int64_t before = 0;
  for (const Interval& interval : intervals) {
    block.add_name(interval.name);
    block.add_start(interval.start - before);
    block.add_duration(interval.end - interval.start);
    before = interval.start;
  }
  return sample;
}

class RandomBlock {
 public:
  explicit RandomBlock(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) iterations.push_back(static_cast<int64_t>(10 + random_() % 30));
    Fill(0, iterations[0] + iterations[1] + iterations[2], 0);
  }

  std::vector<int64_t> iterations;
  std::vector<Interval> intervals;  // nested

 private:
  void Fill(int64_t begin, int64_t end, int depth) {
    while (depth < 4 && begin < end) {
      const int64_t start = begin + static_cast<int64_t>(random_() % 5);
      const int64_t stop = start + 1 + static_cast<int64_t>(random_() % 12);
      if (stop > end) return;
      intervals.push_back({static_cast<int32_t>(random_() % kNumNames), start, stop});
      Fill(start, stop, depth + 1);
      begin = stop;
    }
  }

  std::mt19937_64 random_;
};

// Each moment belongs to the outermost collective measurement that runs, else to the innermost of any.
TEST(CutBlock, EachMomentBelongsToWhatRunsThen) {
  const std::vector<int32_t> names = {10, 11, 12, 13, 14};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomBlock random(seed);
    const int64_t size = random.iterations[0] + random.iterations[1] + random.iterations[2];
    const auto iteration_at = [&](int64_t moment) {
      return 100 + (moment >= random.iterations[0]) + (moment >= random.iterations[0] + random.iterations[1]);
    };
    // The name, ordinal, iteration and begin of what each moment belongs to.
    using Owner = std::tuple<int32_t, int32_t, int64_t, int64_t>;
    std::vector<Owner> expected(static_cast<size_t>(size), Owner(-1, -1, 0, 0));
    std::map<std::pair<int32_t, int64_t>, int32_t> ordinals;
    int64_t collective_until = 0;
    for (const Interval& interval : random.intervals) {
      const bool is_collective = interval.name == 2 || interval.name == 3;
      const int64_t iteration = iteration_at(interval.start);
      // One inside of another counts as well: on another rank it may be beside that.
      const int32_t ordinal = is_collective ? ordinals[{interval.name, iteration}]++ : -1;
      if (interval.start < collective_until) continue;
      Owner owner(names[interval.name], -1, 0, 0);
      if (is_collective) {
        collective_until = interval.end;
        owner = {names[interval.name], ordinal, iteration, interval.start};
      }
      std::fill(expected.begin() + interval.start, expected.begin() + interval.end, owner);
    }

    const IterationSample sample = SampleOf(random.intervals, random.iterations);
    ASSERT_TRUE(CheckSample(sample).ok());
    std::vector<Owner> cut;
    for (const Piece& piece : CutBlock(sample, sample.blocks(0), names)) {
      ASSERT_EQ(piece.start, 1000 + static_cast<int64_t>(cut.size())) << seed;
      ASSERT_GT(piece.end, piece.start) << seed;
      EXPECT_TRUE(piece.iteration >= 100 && piece.iteration <= 102) << seed;
      const bool is_work = piece.ordinal < 0;
      cut.resize(static_cast<size_t>(piece.end - 1000),
                 is_work ? Owner(piece.name, piece.ordinal, 0, 0)
                         : Owner(piece.name, piece.ordinal, piece.iteration, piece.start - 1000));
    }
    EXPECT_EQ(cut, expected) << seed;
  }
}

// Another measurement counts if it runs beside a collective one and was not begun before it and ended after
// it.
TEST(TimeInsideOfCollectives, CountsMomentsInWhichAnotherMeasurementRunsInside) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Interval> intervals(random() % 8);
    for (Interval& interval : intervals) {
      interval.name = static_cast<int32_t>(random() % kNumNames);
      interval.start = static_cast<int64_t>(random() % 20);
      interval.end = interval.start + static_cast<int64_t>(random() % 15);
    }
    std::stable_sort(intervals.begin(), intervals.end(),
                     [](const Interval& a, const Interval& b) { return a.start < b.start; });
    int64_t inside = 0;
    for (int64_t moment = 0; moment < 40; ++moment) {
      bool is_inside = false;
      for (size_t a = 0; a < intervals.size(); ++a) {
        for (size_t b = 0; b < intervals.size(); ++b) {
          const Interval &collective = intervals[a], &other = intervals[b];
          is_inside |= (collective.name == 2 || collective.name == 3) && other.name < 2 &&
                       collective.start <= moment && moment < collective.end && other.start <= moment &&
                       moment < other.end && (b > a || other.end < collective.end);
        }
      }
      inside += is_inside;
    }
    const IterationSample sample = SampleOf(intervals, {40});
    const std::vector<int64_t> by_name = TimeInsideOfCollectives(sample, sample.blocks(0));
    EXPECT_EQ(by_name.size(), kNumNames) << trial;
    EXPECT_EQ(by_name[2] + by_name[3], inside) << trial;
    EXPECT_EQ(std::accumulate(by_name.begin(), by_name.end(), int64_t{0}), inside) << trial;
  }
}

TEST(CheckSample, WhatCannotBeIsRefusedByRankAndPlace) {
  const IterationSample good = SampleOf({{0, 1, 2}, {2, 3, 5}}, {10, 10});
  using Damage = std::function<void(IterationSample&, IterationBlock&)>;
  const std::vector<std::pair<Damage, std::string>> damages = {
      {[](auto& sample, auto&) { sample.add_names("f"); },
       "rank 3: 6 names, of which 5 are collective or not"},
      {[](auto& sample, auto&) { sample.add_collective(true); }, "rank 3: 5 names, of which 6"},
      {[](auto&, auto& block) { block.add_name(0); }, "rank 3: a block of 3 names, 2 starts and 2 durations"},
      {[](auto&, auto& block) { block.add_start(0); },
       "rank 3: a block of 2 names, 3 starts and 2 durations"},
      {[](auto&, auto& block) { block.add_duration(0); }, "2 names, 2 starts and 3 durations"},
      {[](auto&, auto& block) { block.mutable_start()->RemoveLast(); }, "2 names, 1 starts and 2 durations"},
      {[](auto&, auto& block) { block.clear_iteration_end(); }, "rank 3: a block of 2 names"},
      {[](auto&, auto& block) { block.set_first_iteration(-1); }, "rank 3: the block of iteration -1 has"},
      {[](auto&, auto& block) { block.set_error_bound(-1); }, "rank 3: the block of iteration 100 has impos"},
      {[](auto&, auto& block) { block.set_begin(kMaxTime + 1); },
       "rank 3: the block of iteration 100 has impos"},
      {[](auto&, auto& block) { block.set_begin(-kMaxTime - 1); },
       "the block of iteration 100 has impossible"},
      {[](auto&, auto& block) { block.set_iteration_end(0, -1); },
       "the block of iteration 100 has impossible"},
      {[](auto&, auto& block) { block.set_iteration_end(1, kMaxTime - 9); },
       "the block of iteration 100 has"},
      {[](auto&, auto& block) { block.set_name(1, -1); }, "rank 3: interval 1 of iteration 100 is invalid"},
      {[](auto&, auto& block) { block.set_name(1, kNumNames); },
       "rank 3: interval 1 of iteration 100 is invalid"},
      {[](auto&, auto& block) { block.set_start(0, -1); }, "rank 3: interval 0 of iteration 100 is invalid"},
      {[](auto&, auto& block) { block.set_duration(0, -1); },
       "rank 3: interval 0 of iteration 100 is invalid"},
      {[](auto&, auto& block) { block.set_start(1, kMaxTime); },
       "rank 3: interval 1 of iteration 100 is invalid"},
      {[](auto& sample, auto& block) { *sample.add_blocks() = block; },
       "rank 3: the block of iteration 100 follows that of 100"}};
  EXPECT_TRUE(CheckSample(good).ok());
  for (const auto& [damage, message] : damages) {
    IterationSample damaged = good;
    damage(damaged, *damaged.mutable_blocks(0));
    const absl::Status status = CheckSample(damaged);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  // What is just possible.
  IterationSample extreme = good;
  IterationBlock& block = *extreme.mutable_blocks(0);
  for (const int64_t begin : {-kMaxTime, kMaxTime}) {
    block.set_begin(begin);
    block.set_error_bound(kMaxTime);
    block.set_iteration_end(1, kMaxTime - 10);
    block.set_start(1, kMaxTime - 1);
    block.set_duration(1, kMaxTime);
    EXPECT_TRUE(CheckSample(extreme).ok());
  }
  block.set_first_iteration(0);
  *extreme.add_blocks() = block;
  extreme.mutable_blocks(1)->set_first_iteration(kMaxTime);
  EXPECT_TRUE(CheckSample(extreme).ok());
}

}  // namespace
}  // namespace ott::saved
