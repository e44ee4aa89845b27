#include "ott/questions/saved/iteration_sampler.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/local_communicator.h"
#include "ott/questions/saved/sampled_job.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

using ::testing::ElementsAreArray;

constexpr int kLength = IterationSampler::kIterationsPerBlock;

// Returns what an iteration measures on the thread that ends it, by start.
std::vector<std::string> MeasuredIn(int64_t iteration) {
  std::vector<std::string> names = {"forward"};
  if (iteration % 3 > 0) names.push_back("layer");
  if (iteration % 5 > 0) names.push_back("reduce a");
  if (iteration % 7 == 0) names.push_back("own time");
  return names;
}

// is_crowded: another thread measures more than its buffer holds.
void Iterate(int64_t iteration, bool is_crowded) {
  {
    OTT_STOPWATCH_SCOPE("forward");
    if (iteration % 3 > 0) {
      OTT_STOPWATCH_SCOPE("layer");
    }
  }
  if (iteration % 5 > 0) {
    OTT_STOPWATCH_SCOPE("reduce a");
  }
  if (iteration % 7 == 0) {
    OTT_STOPWATCH_SCOPE("own time");
  }
  // Intervals of other threads do not count.
  if (iteration % 128 == 0 || is_crowded) {
    const size_t num_beside = is_crowded ? IterationSampler::kBufferBytes / 8 : 1;
    std::thread([num_beside] {
      for (size_t i = 0; i < num_beside; ++i) {
        OTT_STOPWATCH_SCOPE("beside");
      }
    }).join();
  }
  Stopwatch::Get().FinishIter();
}

// Returns how often a block's number can be halved: those that all ranks would leave out last first.
int HalvingsOf(int64_t number) {
  int halvings = 0;
  for (; number > 0 && number % 2 == 0; number /= 2) ++halvings;
  return number == 0 ? 1000 : halvings;
}

TEST(IterationSampler, KeepsTheBlocksOfTheDefinition) {
  // The process's stopwatch can be enabled once.
  ASSERT_TRUE(Stopwatch::Get().Enable({}).ok());
  ClockAligner clock(CreateLocalCommunicator());
  ASSERT_TRUE(clock.Measure(1, Deadline::Now()).ok());
  std::mt19937 random(1);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  int num_lost = 0, num_thinned = 0;
  for (int trial = 0; trial < 20; ++trial) {
    SCOPED_TRACE(trial);
    IterationSampler::Options options;
    options.first_iteration = 9 * below(2);
    options.num_warmup_iters = std::vector<int64_t>{-1, 0, 5}[static_cast<size_t>(below(3))];
    options.rank = 3;
    options.world_size = 8;
    options.host = "a";
    options.like_work = "of a stage";
    options.collective_measurements = {"reduce*"};
    if (below(2) == 0) options.observer_measurement = "own time";
    if (below(2) == 0) options.collective_groups = {{"reduce a", "group"}, {"other", "none"}};
    const int64_t end = options.first_iteration + (below(4) == 0 ? 2500 : 1 + below(900));
    // A profiler has the intervals of some iterations for itself.
    std::set<int64_t> profiled;
    for (int i = below(4); i > 0; --i) {
      const int first = below(static_cast<int>(end));
      for (int j = below(30); j >= 0; --j) profiled.insert(first + j);
    }
    const int64_t crowded = trial % 3 == 0 ? options.first_iteration + below(60) : -1;
    IterationSampler sampler(options);
    for (int64_t i = options.first_iteration; i < end; ++i) {
      Iterate(i, i == crowded);
      if (profiled.count(i) > 0) Stopwatch::Get().RecordInto(nullptr);
      sampler.FinishIter(i, clock, profiled.count(i) > 0);
    }

    const int64_t origin = options.first_iteration + std::max<int64_t>(0, options.num_warmup_iters);
    std::vector<int64_t> kept;
    int64_t spacing = 1, lost = 0;
    for (int64_t number = 0; origin + number * kLength < end; ++number) {
      const int64_t first = origin + number * kLength;
      const auto in_profile = profiled.lower_bound(first);
      const bool begins = first == options.first_iteration || profiled.count(first - 1) == 0;
      if (number % spacing != 0 || !begins) continue;
      if (in_profile != profiled.end() && *in_profile < std::min(first + kLength, end)) {
        lost += kLength;
      } else if (first + kLength <= end && crowded >= first && crowded < first + kLength) {
        lost += kLength;
      } else if (first + kLength <= end) {
        kept.push_back(number);
      }
      if (kept.size() < IterationSampler::kMaxBlocks) continue;
      spacing *= 2;
      kept.erase(std::remove_if(kept.begin(), kept.end(), [&](int64_t of) { return of % spacing != 0; }),
                 kept.end());
    }
    num_lost += lost > 0;
    num_thinned += spacing > 1;
    const IterationSample sample = sampler.Sample();
    EXPECT_EQ(sample.rank(), 3);
    EXPECT_EQ(sample.world_size(), 8);
    EXPECT_EQ(sample.host(), "a");
    EXPECT_EQ(sample.like_work(), "of a stage");
    EXPECT_EQ(sample.num_iterations(), end);
    EXPECT_EQ(sample.num_iterations_lost(), lost);
    std::map<std::string, int> index;
    for (const std::string& name : sample.names()) {
      EXPECT_TRUE(index.emplace(name, index.size()).second) << name;
      const int of = index[name];
      EXPECT_EQ(sample.collective(of), name == "reduce a");
      EXPECT_EQ(sample.group(of), name == "reduce a" && !options.collective_groups.empty() ? "group" : "");
    }
    const bool has_observer = !options.observer_measurement.empty() && index.count("own time") > 0;
    EXPECT_EQ(sample.observer(), has_observer ? index["own time"] : -1);

    ASSERT_EQ(sample.blocks_size(), kept.size());
    int64_t before = 0;
    for (int b = 0; b < sample.blocks_size(); ++b) {
      const IterationBlock& block = sample.blocks(b);
      ASSERT_EQ(block.first_iteration(), origin + kept[static_cast<size_t>(b)] * kLength);
      ASSERT_EQ(block.iteration_end_size(), kLength);
      std::vector<std::string> names, expected;
      int64_t time = 0, iteration_end = 0;
      int interval = 0;
      for (int i = 0; i < kLength; ++i) {
        iteration_end += block.iteration_end(i);
        const std::vector<std::string> measured = MeasuredIn(block.first_iteration() + i);
        expected.insert(expected.end(), measured.begin(), measured.end());
        for (size_t j = 0; j < measured.size() && interval < block.name_size(); ++j, ++interval) {
          names.push_back(sample.names(block.name(interval)));
          EXPECT_GE(block.start(interval), 0);
          time += block.start(interval);
          EXPECT_LE(time + block.duration(interval), iteration_end);
        }
      }
      ASSERT_THAT(names, ElementsAreArray(expected));
      EXPECT_EQ(block.name_size(), expected.size());
      EXPECT_GE(block.begin(), before);
      before = block.begin() + iteration_end;
    }

    // Of fewer bytes, those that all ranks would leave out last.
    std::vector<std::pair<int, int>> order;
    for (int b = 0; b < sample.blocks_size(); ++b)
      order.emplace_back(-HalvingsOf(kept[static_cast<size_t>(b)]), b);
    std::sort(order.begin(), order.end());
    IterationSample none = sample;
    none.clear_blocks();
    for (const size_t max_bytes :
         {sample.ByteSizeLong(), sample.ByteSizeLong() - 1, sample.ByteSizeLong() / 3, size_t{0}}) {
      std::set<int> chosen;
      size_t bytes = none.ByteSizeLong();
      for (const auto& [unused, b] : order) {
        bytes += sample.blocks(b).ByteSizeLong();
        if (max_bytes < sample.ByteSizeLong() && bytes > max_bytes) break;
        chosen.insert(b);
      }
      IterationSample expected = none;
      for (const int b : chosen) *expected.add_blocks() = sample.blocks(b);
      EXPECT_EQ(sampler.Sample(max_bytes).SerializeAsString(), expected.SerializeAsString()) << max_bytes;
    }
    if (sample.blocks_size() == 0) continue;
    const ReplayJob job = MakeJob({sample}).value();
    EXPECT_LT(AnswerWhatIf(job).replay_error(), 1e-9);
  }
  EXPECT_GT(num_lost, 2);
  EXPECT_GT(num_thinned, 2);
}

}  // namespace
}  // namespace ott::saved
