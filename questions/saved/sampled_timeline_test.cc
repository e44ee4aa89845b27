// Reads the samples of any run, and draws them by the rules once more, interval by interval.

#include "ott/questions/saved/sampled_timeline.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/saved/iteration_sample.pb.h"

namespace ott::saved {
namespace {

// Draws runs, and samples that are whole or damaged.
struct AnyRun {
  explicit AnyRun(unsigned seed) : random(seed) {
    for (int rank = 0, count = Below(4) == 0 ? 40 : 1 + Below(5); count > 0; ++rank) {
      if (Below(4) == 0) continue;
      ranks.push_back(rank);
      --count;
    }
    num_intervals = Below(4) == 0 ? 60 : 8;
    num_names = Below(4) == 0 ? 230 : 4;
    num_blocks = 1 + Below(4);
    for (int i = Below(30); i > 0; --i) wanted.push_back(Below(60));
  }

  int Below(int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

  IterationSample Sample(int rank) {
    IterationSample sample;
    sample.set_rank(rank);
    sample.set_observer(Below(num_names + 2) - 1);
    for (int name = 0; name < num_names; ++name) {
      sample.add_names(absl::StrCat("n", (name + rank % 2) % num_names));
      sample.add_collective(Below(2) == 0);
    }
    for (int i = Below(8) == 0 ? 0 : num_blocks; i > 0; --i) {
      IterationBlock& block = *sample.add_blocks();
      block.set_first_iteration(10 * (num_blocks - i));
      block.set_begin(1000 * (num_blocks - i) + Below(100) - 50);
      block.set_error_bound(Below(9));
      for (int j = 1 + Below(4); j > 0; --j) block.add_iteration_end(20 + Below(50));
      for (int j = Below(block.iteration_end_size() * num_intervals); j > 0; --j) {
        block.add_name(Below(num_names));
        block.add_start(Below(num_intervals > 8 ? 2 : 9));
        block.add_duration(Below(20));
      }
    }
    return sample;
  }

  // Makes a sample one that no rank writes; true if it is.
  bool Damage(IterationSample& sample) {
    if (sample.blocks_size() == 0 || sample.blocks(0).name_size() == 0) return false;
    IterationBlock& block = *sample.mutable_blocks(0);
    switch (Below(7)) {
      case 0:
        block.add_start(1);
        return true;
      case 1:
        block.add_duration(1);
        return true;
      case 2:
        block.set_name(0, -1);
        return true;
      case 3:
        block.set_name(0, num_names);
        return true;
      case 4:
        block.set_duration(0, -1);
        return true;
      case 5:
        block.set_iteration_end(0, (int64_t{1} << 60) + 1);
        return true;
      default:
        sample.set_rank(sample.rank() + 1);
        return true;
    }
  }

  std::mt19937 random;
  std::vector<int> ranks, wanted;
  int num_intervals, num_names, num_blocks;
};

// Holds an interval, and where it lies.
struct Drawn {
  int name = 0, depth = 0;
  int64_t start = 0, duration = 0;
};

// Draws the iterations of ranks that were read, in their order.
class Drawing {
 public:
  void Add(const IterationSample& sample) {
    std::vector<std::pair<int64_t, int64_t>> all;  // minus duration, minus iteration
    std::vector<int64_t> numbers;
    for (const IterationBlock& block : sample.blocks()) {
      for (int i = 0; i < block.iteration_end_size(); ++i) {
        numbers.push_back(block.first_iteration() + i);
        all.emplace_back(-block.iteration_end(i), -numbers.back());
      }
    }
    if (chosen_.empty()) {
      num_sampled_ = static_cast<int64_t>(numbers.size());
      std::sort(all.begin(), all.end());
      for (size_t i = 0; i < std::min<size_t>(2, all.size()); ++i) chosen_.insert(-all[i].second);
      for (size_t i = 0; i < std::min<size_t>(8, numbers.size()); ++i) {
        const size_t spread = numbers.size() <= 8 ? i : i * (numbers.size() - 1) / 7;
        if (chosen_.size() < 8) chosen_.insert(numbers[spread]);
      }
    }
    if (sample.observer() >= 0 && sample.observer() < sample.names_size()) IndexOf(sample, sample.observer());
    for (const IterationBlock& block : sample.blocks()) {
      int64_t begin = block.begin();
      for (int i = 0; i < block.iteration_end_size(); ++i) {
        const int64_t number = block.first_iteration() + i, end = begin + block.iteration_end(i);
        if (chosen_.count(number) > 0) AddIteration(sample, block, i, begin, end);
        begin = end;
      }
    }
  }

  TimelinePicture Picture(size_t num_ranks) {
    picture_.set_of("iteration");
    picture_.set_num_sampled(num_sampled_);
    picture_.set_num_ranks(static_cast<int64_t>(num_ranks));
    size_t count = 0;
    for (const auto& [number, ranks] : iterations_) count += ranks.size();
    for (auto& [number, ranks] : iterations_) {
      TimelinePicture::Iteration& iteration = *picture_.add_iterations();
      iteration.set_iteration(number);
      int64_t first = INT64_MAX, num_left_out = 0;
      for (const Rank& rank : ranks) {
        iteration.set_error_bound(std::max(iteration.error_bound(), rank.error_bound));
        first = std::min(first, rank.begin);
      }
      for (Rank& rank : ranks) {
        const size_t most = 8000 / count;
        if (rank.spans.size() > most) {
          num_left_out += static_cast<int64_t>(rank.spans.size() - most);
          std::stable_sort(rank.spans.begin(), rank.spans.end(),
                           [](const Drawn& a, const Drawn& b) { return a.duration > b.duration; });
          rank.spans.resize(most);
          std::stable_sort(rank.spans.begin(), rank.spans.end(),
                           [](const Drawn& a, const Drawn& b) { return a.start < b.start; });
        }
        TimelinePicture::Rank& drawn = *iteration.add_ranks();
        drawn.set_rank(rank.rank);
        drawn.set_begin(rank.begin - first);
        drawn.set_end(rank.end - first);
        for (const Drawn& span : rank.spans) {
          drawn.add_name(span.name);
          drawn.add_depth(span.depth);
          drawn.add_start(span.start - first);
          drawn.add_duration(span.duration);
        }
      }
      iteration.set_num_left_out(num_left_out);
      num_left_out_ += num_left_out;
    }
    return picture_;
  }

  int64_t num_left_out() const { return num_left_out_; }

 private:
  struct Rank {
    int rank;
    int64_t error_bound, begin, end;
    std::vector<Drawn> spans;
  };

  // Of more than 200 names, the others share one.
  int IndexOf(const IterationSample& sample, int name) {
    std::string text = sample.names(name);
    const auto find = [&] {
      return std::find_if(picture_.names().begin(), picture_.names().end(),
                          [&](const auto& known) { return known.name() == text; }) -
             picture_.names().begin();
    };
    if (find() == picture_.names_size() && picture_.names_size() >= 200) text = "(others)";
    const auto index = static_cast<int>(find());
    if (index < picture_.names_size()) return index;
    TimelinePicture::Name& added = *picture_.add_names();
    added.set_name(text);
    added.set_collective(sample.collective(name));
    added.set_observer(name == sample.observer());
    return index;
  }

  void AddIteration(const IterationSample& sample, const IterationBlock& block, int index, int64_t begin,
                    int64_t end) {
    Rank& rank = iterations_[block.first_iteration() + index].emplace_back();
    rank = {sample.rank(), block.error_bound(), begin, end, {}};
    const bool is_first = index == 0, is_last = index + 1 == block.iteration_end_size();
    int64_t start = block.begin();
    for (int i = 0; i < block.name_size(); ++i) {
      start += block.start(i);
      if ((!is_first && start < begin) || (!is_last && start >= end)) continue;
      // It lies in the one before it, or in one that this lies in.
      int64_t within = static_cast<int64_t>(rank.spans.size()) - 1;
      int depth = within < 0 ? 0 : rank.spans.back().depth + 1;
      for (; within >= 0; --within) {
        const Drawn& around = rank.spans[static_cast<size_t>(within)];
        if (around.depth >= depth) continue;
        if (around.start + around.duration > start) break;
        depth = around.depth;
      }
      rank.spans.push_back({IndexOf(sample, block.name(i)), depth, start, block.duration(i)});
    }
  }

  std::set<int64_t> chosen_;
  int64_t num_sampled_ = 0, num_left_out_ = 0;
  std::map<int64_t, std::vector<Rank>> iterations_;
  TimelinePicture picture_;
};

TEST(SampledTimeline, OfAnyRunIsDrawnByTheRules) {
  int num_thinned = 0, num_empty = 0, num_others = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    AnyRun any(seed);
    const std::string run = absl::StrCat(testing::TempDir(), "/timeline_", seed);
    std::map<int, IterationSample> readable;
    for (const int rank : any.ranks) {
      std::filesystem::create_directories(RankDirectory(run, rank));
      if (any.Below(8) == 0) continue;
      IterationSample sample = any.Sample(rank);
      std::string bytes = sample.SerializeAsString();
      bool is_damaged = any.Below(8) == 0;
      if (is_damaged) {
        is_damaged = any.Damage(sample);
        bytes = sample.SerializeAsString();
      } else if (any.Below(16) == 0) {
        is_damaged = true;
        bytes = "\xff";
      }
      if (!is_damaged) readable[rank] = sample;
      ASSERT_TRUE(WriteFileAtomically(IterationsPath(run, rank), bytes).ok());
    }
    // At most 32 ranks, of which 16 are asked for.
    std::set<int> chosen;
    for (const int rank : any.wanted) {
      if (chosen.size() < 16 && std::count(any.ranks.begin(), any.ranks.end(), rank) > 0) chosen.insert(rank);
    }
    for (size_t i = 0; i < std::min<size_t>(any.ranks.size(), 32); ++i) {
      const size_t spread = any.ranks.size() <= 32 ? i : i * (any.ranks.size() - 1) / 31;
      if (chosen.size() < 32) chosen.insert(any.ranks[spread]);
    }
    Drawing drawing;
    for (const int rank : chosen) {
      if (readable.count(rank) > 0) drawing.Add(readable[rank]);
    }
    const TimelinePicture expected = drawing.Picture(any.ranks.size());
    const absl::StatusOr<TimelinePicture> picture = ReadSampledTimeline(run, any.wanted);
    ASSERT_EQ(picture.ok(), expected.iterations_size() > 0) << picture.status();
    num_empty += !picture.ok();
    if (!picture.ok()) continue;
    ASSERT_EQ(picture->SerializeAsString(), expected.SerializeAsString())
        << picture->ShortDebugString() << "\n"
        << expected.ShortDebugString();
    num_thinned += drawing.num_left_out() > 0;
    num_others += expected.names_size() > 200;
  }
  EXPECT_GT(num_thinned, 2);
  EXPECT_GT(num_empty, 2);
  EXPECT_GT(num_others, 2);
}

}  // namespace
}  // namespace ott::saved
