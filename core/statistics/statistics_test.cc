// Against published tables and examples, and against simulated truth.

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/statistics/block_shift.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/group_sequential.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/modes.h"
#include "ott/core/statistics/permuted_maximum.h"
#include "ott/core/statistics/warm_up.h"

namespace ott {
namespace {

TEST(Distributions, AreThoseOfTablesAndNoNumberIsNoEvidence) {
  EXPECT_NEAR(NormalQuantile(0.975), 1.959964, 1e-6);
  EXPECT_NEAR(NormalProbability(1.959964), 0.975, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.975, 4), 2.776445, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.995, 18), 2.878440, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.005, 2), -9.924843, 1e-6);
  EXPECT_NEAR(StudentTTwoSidedPValue(2.776445, 4), 0.05, 1e-6);
  EXPECT_NEAR(StudentTTwoSidedPValue(-2.776445, 4), 0.05, 1e-6);
  EXPECT_EQ(StudentTTwoSidedPValue(0, 4), 1);
  EXPECT_EQ(StudentTTwoSidedPValue(NAN, 4), 1);
  EXPECT_EQ(StudentTTwoSidedPValue(-INFINITY, 4), 0);
}

// Hours of sleep gained with two drugs (Student 1908); R's t.test() of them is quoted below.
const std::vector<double> kFirstDrug = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const std::vector<double> kSecondDrug = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

TEST(WelchDifference, IsThatOfAPublishedExample) {
  const Estimate estimate = WelchDifference(kFirstDrug, kSecondDrug);
  EXPECT_NEAR(estimate.value, 1.58, 1e-9);
  EXPECT_NEAR(estimate.degrees_of_freedom, 17.776, 1e-3);
  EXPECT_NEAR(estimate.PValue(), 0.07939, 1e-5);
  const Interval interval = estimate.IntervalAt(0.05);
  EXPECT_NEAR(interval.low, -0.2054832, 1e-6);
  EXPECT_NEAR(interval.high, 3.3654832, 1e-6);
}

// Goes through all ways to choose which samples of each block are of `a`: in how many of them there are so
// many pairs with `a` above.
std::vector<double> WaysByPairs(const std::vector<Block>& blocks) {
  std::vector<double> ways = {1};
  for (const Block& block : blocks) {
    const size_t size = block.a.size() + block.b.size();
    std::vector<double> with_block(ways.size() + block.a.size() * block.b.size());
    for (uint32_t chosen = 0; chosen < uint32_t{1} << size; ++chosen) {
      if (std::bitset<32>(chosen).count() != block.a.size()) continue;
      size_t pairs = 0;
      for (size_t a = 0; a < size; ++a) {
        for (size_t b = 0; b < a; ++b) pairs += (chosen >> a & 1) > (chosen >> b & 1) ? 1 : 0;
      }
      for (size_t i = 0; i < ways.size(); ++i) with_block[i + pairs] += ways[i];
    }
    ways = with_block;
  }
  return ways;
}

// The shift is the median of the differences. Its interval leaves out as many of them at either end as the
// error allows.
TEST(BlockShift, OfAnyBlocksIsThatOfTheDefinition) {
  std::mt19937_64 random(4);
  int num_without = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const bool is_small = trial % 3 == 0;  // whose probabilities have no rounding
    std::vector<Block> blocks(1 + random() % 3);
    std::vector<double> differences;
    for (Block& block : blocks) {
      for (std::vector<double>* const side : {&block.a, &block.b}) {
        side->resize(is_small ? 1 : 1 + random() % 4);
        for (double& sample : *side) sample = static_cast<double>(random() % 20);
      }
      for (const double a : block.a) {
        for (const double b : block.b) differences.push_back(b - a);
      }
    }
    std::sort(differences.begin(), differences.end());
    const BlockShift shift(blocks);
    const size_t count = differences.size();
    EXPECT_EQ(shift.value(), (differences[(count - 1) / 2] + differences[count / 2]) / 2);
    const std::vector<double> ways = WaysByPairs(blocks);
    const double all = std::accumulate(ways.begin(), ways.end(), 0.0);
    double below = 0;
    for (size_t left_out = 0; left_out <= count / 2; below += ways[left_out++]) {
      const double error = 2 * below / all, next = 2 * (below + ways[left_out]) / all;
      for (const double at : {error + (is_small ? 0 : 1e-9), (error + next) / 2}) {
        if (at <= 0 || at >= 1) continue;
        const Interval interval = shift.IntervalAt(at);
        EXPECT_EQ(interval.low, left_out == 0 ? -INFINITY : differences[left_out - 1]) << trial;
        EXPECT_EQ(interval.high, left_out == 0 ? INFINITY : differences[count - left_out]) << trial;
        num_without += left_out == 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(num_without, 100);
  EXPECT_NEAR(SmallestErrorOfBlocks(1, 4), 2.0 / 70, 1e-12);
  EXPECT_NEAR(SmallestErrorOfBlocks(3, 2), 2.0 / 216, 1e-12);
}

TEST(WelchDifference, OfAnySizesIsThatOfTheDefinition) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 100; ++i) {
    std::vector<double> samples[2];
    double mean[2], variance[2], degrees[2];  // variance: of the mean
    for (int side = 0; side < 2; ++side) {
      const auto size = static_cast<double>(side == 1 && i % 4 == 0 ? samples[0].size() : 2 + random() % 20);
      const double scale = std::exp(2 * normal(random));
      double sum = 0, squares = 0;
      while (static_cast<double>(samples[side].size()) < size)
        samples[side].push_back(5 + scale * normal(random));
      for (const double sample : samples[side]) sum += sample, squares += sample * sample;
      mean[side] = sum / size;
      degrees[side] = size - 1;
      variance[side] = (squares - sum * sum / size) / degrees[side] / size;
    }
    for (const bool is_cautious : {false, true}) {
      // The smaller side varies by no less than the larger, then.
      const int smaller = degrees[0] < degrees[1] ? 0 : 1;
      const double of_larger = variance[1 - smaller] * (degrees[1 - smaller] + 1) / (degrees[smaller] + 1);
      if (is_cautious && degrees[0] != degrees[1]) variance[smaller] = std::max(variance[smaller], of_larger);
      const Estimate estimate =
          is_cautious ? CautiousDifference(samples[0], samples[1]) : WelchDifference(samples[0], samples[1]);
      EXPECT_NEAR(estimate.value, mean[1] - mean[0], 1e-9);
      EXPECT_NEAR(estimate.standard_error, std::sqrt(variance[0] + variance[1]), 1e-6);
      const double all = variance[0] + variance[1];
      EXPECT_NEAR(
          estimate.degrees_of_freedom,
          all * all / (variance[0] * variance[0] / degrees[0] + variance[1] * variance[1] / degrees[1]),
          1e-4);
    }
  }
}

TEST(WelchDifference, OfSamplesThatDoNotVaryIsTakenAtItsWord) {
  // Their mean is rounded.
  for (size_t size = 2; size < 30; ++size) {
    const Estimate none = WelchDifference({0.1, 0.1}, std::vector<double>(size, 0.1));
    EXPECT_EQ(none.PValue(), 1);
    EXPECT_EQ(none.IntervalAt(0.01).high, 0) << size;
  }
  EXPECT_EQ(WelchDifference({1, 1}, {2, 2}).PValue(), 0);
  EXPECT_EQ(WelchDifference({2, 2}, {1, 1}).PValue(), 0);
  EXPECT_EQ(WelchDifference({1, 1}, {2, 2}).IntervalAt(0.01).low, 1);
  // The quantile of so few degrees of freedom is infinite.
  EXPECT_EQ((Estimate{1, 0, 1e-3}).IntervalAt(0.01).low, 1);
}

bool Misses(const Interval& interval, double truth) { return interval.low > truth || interval.high < truth; }

TEST(WelchDifference, IntervalsMissTheTruthAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 20000;
  int missed = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> a, b;
    for (int i = 0; i < 6; ++i) {
      a.push_back(normal(random));
      b.push_back(0.5 + normal(random));
    }
    missed += Misses(WelchDifference(a, b).IntervalAt(0.05), 0.5);
  }
  EXPECT_NEAR(missed, 0.05 * kTrials, 155);  // five standard deviations
}

// Noise of two modes, spikes, and load that stays for some blocks; looked at after each block.
TEST(BlockShift, IntervalsOfAllLooksMissTheTruthAsRarelyAsTheySay) {
  std::vector<double> information;
  for (int samples = 8; samples <= 20; samples += 2) information.push_back(samples / 20.0);
  const std::vector<double> levels = GroupSequentialLevels(information, 0.05);
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  constexpr int kTrials = 10000;
  int missed = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<Block> blocks;
    double load = 0;
    const auto sample = [&] {
      const double mode = uniform(random) < 0.5 ? 4 : 0;
      const double spike = uniform(random) < 0.1 ? 100 * uniform(random) : 0;
      return load + mode + spike + 0.3 * normal(random);
    };
    for (size_t num_blocks = 1; num_blocks <= 10; ++num_blocks) {
      load += 10 * normal(random);
      blocks.push_back({{sample(), sample()}, {sample() + 1, sample() + 1}});
      if (num_blocks >= 4 && Misses(BlockShift(blocks).IntervalAt(levels[num_blocks - 4]), 1)) {
        ++missed;
        break;
      }
    }
  }
  EXPECT_LE(missed, 0.05 * kTrials + 109);  // five standard deviations
  EXPECT_GE(missed, 0.02 * kTrials);        // and it is not far too wide
}

// By adding up the density of the sum at the first look.
TEST(GroupSequential, TheSecondOfTwoLooksSpendsTheRest) {
  for (const double first : {0.1, 0.5, 0.9}) {
    constexpr double kError = 0.2;
    const std::vector<double> levels = GroupSequentialLevels({first, 1}, kError);
    EXPECT_NEAR(levels[0], kError * SpentError(first), 1e-9);
    const double bound = -NormalQuantile(levels[0] / 2) * std::sqrt(first);
    const double last = -NormalQuantile(levels[1] / 2), deviation = std::sqrt(1 - first);
    constexpr int kSteps = 20000;
    const double step = 2 * bound / kSteps;
    double spent = 0;
    for (int i = 0; i < kSteps; ++i) {
      const double sum = (i + 0.5) * step - bound;
      const double density = std::exp(-sum * sum / (2 * first)) / std::sqrt(2 * M_PI * first);
      spent += step * density *
               (NormalProbability((sum - last) / deviation) + NormalProbability((-last - sum) / deviation));
    }
    EXPECT_NEAR(spent, kError * (1 - SpentError(first)), 1e-6) << first;
  }
}

TEST(GroupSequential, EachOfFewOrManyLooksSpendsWhatItMay) {
  std::vector<std::vector<double>> schedules = {{0.2, 0.5, 0.6, 1}};
  for (const int looks : {8, 500}) {
    std::vector<double>& information = schedules.emplace_back();
    for (int look = looks / 4; look <= looks; ++look) information.push_back(1.0 * look / looks);
  }
  constexpr double kError = 0.2;
  constexpr int kRuns = 20000;
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (const std::vector<double>& information : schedules) {
    const std::vector<double> levels = GroupSequentialLevels(information, kError);
    std::vector<double> bounds;
    for (size_t look = 0; look < levels.size(); ++look)
      bounds.push_back(-NormalQuantile(levels[look] / 2) * std::sqrt(information[look]));
    std::vector<int> stopped(information.size());
    for (int run = 0; run < kRuns; ++run) {
      double sum = 0, time = 0;
      for (size_t look = 0; look < information.size(); ++look) {
        sum += std::sqrt(information[look] - time) * normal(random);
        time = information[look];
        if (std::abs(sum) < bounds[look]) continue;
        ++stopped[look];
        break;
      }
    }
    double before = 0;
    for (size_t look = 0; look < information.size(); ++look) {
      const double spent = SpentError(information[look]), expected = kRuns * kError * (spent - before);
      EXPECT_NEAR(stopped[look], expected, 5 * std::sqrt(std::max(expected, 1.0)))
          << look << " of " << levels.size();
      before = spent;
    }
    // Five standard deviations.
    EXPECT_NEAR(std::accumulate(stopped.begin(), stopped.end(), 0), kError * kRuns, 283) << levels.size();
  }
  EXPECT_NEAR(SpentError(1), 1, 1e-12);
}

TEST(WarmUp, OfASteadyProcessIsShort) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  int left_out = 0;
  for (int process = 0; process < 200; ++process) {
    std::vector<double> seconds;
    for (int i = 0; i < 200; ++i) seconds.push_back(std::exp(0.1 * normal(random)));
    left_out += static_cast<int>(WarmUpLength(seconds));
  }
  EXPECT_LT(left_out / 200.0, 30);
  EXPECT_EQ(WarmUpLength({1, 1, 1, 1, 1, 1}), 0);
  EXPECT_EQ(WarmUpLength({5, 1, 1}), 0);
}

// By the definition: what is left after it has the most certain mean, of batches of 5 where there are 20 and
// more.
size_t WarmUpByDefinition(const std::vector<double>& seconds) {
  const size_t batch = seconds.size() < 20 ? 1 : 5;
  std::vector<double> means(seconds.size() / batch);
  for (size_t i = 0; i < means.size() * batch; ++i) means[i / batch] += std::log(seconds[i]) / batch;
  size_t best = 0;
  double least = INFINITY;
  for (size_t begin = 0; begin <= means.size() / 2; ++begin) {
    const double count = means.size() - begin;
    double mean = 0, squares = 0;
    for (size_t i = begin; i < means.size(); ++i) mean += means[i] / count;
    for (size_t i = begin; i < means.size(); ++i) squares += (means[i] - mean) * (means[i] - mean);
    if (squares / (count * count) >= least) continue;
    least = squares / (count * count);
    best = begin;
  }
  return best * batch;
}

TEST(WarmUp, IsThatOfTheDefinition) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> seconds(4 + random() % (trial % 2 == 0 ? 30 : 120));
    const double slow = std::exp(normal(random)), scale = std::exp(5 * normal(random));
    for (size_t i = 0; i < seconds.size(); ++i) {
      seconds[i] = scale * std::exp(slow * std::exp(-0.3 * static_cast<double>(i)) + 0.1 * normal(random));
    }
    EXPECT_EQ(WarmUpLength(seconds), WarmUpByDefinition(seconds)) << "trial " << trial;
  }
}

// The split is compared with the definition: of all allowed splits, the one that leaves least variance
// inside.
TEST(Modes, TheSplitIsTheBestOfAll) {
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal;
  for (const size_t size : {6, 7, 10, 11, 40, 1000}) {
    const size_t fewest = std::max<size_t>(2, size / 5), too_few = size < 20 ? fewest : fewest - 1;
    for (const size_t num_low : {too_few, fewest, size / 3, size / 2, size - fewest, size - too_few}) {
      std::vector<double> samples(size);
      for (size_t i = 0; i < size; ++i) samples[i] = normal(random) + (i < num_low ? 0 : 60);
      const std::optional<TwoModes> modes = FindTwoModes(samples);
      ASSERT_TRUE(modes.has_value()) << size << " samples";
      std::sort(samples.begin(), samples.end());
      double least = std::numeric_limits<double>::infinity();
      TwoModes best;
      for (size_t low = fewest; low + fewest <= size; ++low) {
        const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(low);
        const double low_mean = std::accumulate(samples.begin(), middle, 0.0) / static_cast<double>(low);
        const double high_mean =
            std::accumulate(middle, samples.end(), 0.0) / static_cast<double>(size - low);
        double inside = 0;
        for (size_t i = 0; i < size; ++i)
          inside += std::pow(samples[i] - (i < low ? low_mean : high_mean), 2);
        if (inside >= least) continue;
        least = inside;
        best = {low_mean, high_mean, low, size - low};
      }
      EXPECT_EQ(modes->num_low, best.num_low) << size;
      EXPECT_EQ(modes->num_high, best.num_high) << size;
      EXPECT_NEAR(modes->low, best.low, 1e-9);
      EXPECT_NEAR(modes->high, best.high, 1e-9);
    }
  }
}

TEST(Modes, AreOfSixToAThousandSamplesThatVaryAndNoneIsASingleSample) {
  for (const auto& [size, has_modes] : {std::pair(5, false), {6, true}, {1000, true}, {1001, false}}) {
    std::vector<double> samples(size);
    for (int i = 0; i < size; ++i) samples[i] = (i % 2 == 0 ? 0 : 10) + 0.01 * (i % 5);
    EXPECT_EQ(FindTwoModes(samples).has_value(), has_modes) << size;
  }
  for (size_t size = 6; size < 30; ++size) {
    for (const double sample : {1.0, 0.1, std::log(0.1)})
      EXPECT_FALSE(FindTwoModes(std::vector<double>(size, sample)).has_value()) << size << " of " << sample;
  }
  EXPECT_FALSE(FindTwoModes({1.0, 1.01, 0.99, 1.02, 0.98, 1.03, 1.0, 9.0}).has_value());
}

TEST(Modes, NormalSamplesHaveThemOnceInAThousandTimes) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  int found = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    std::vector<double> samples(10);
    for (double& sample : samples) sample = normal(random);
    found += FindTwoModes(samples).has_value();
  }
  EXPECT_NEAR(found, 10, 9);
}

TEST(Modes, FewSamplesMayBeSeparatedByThem) {
  EXPECT_NEAR(SeparationProbability(3), 2.0 / 64, 1e-9);
  EXPECT_NEAR(SeparationProbability(4), 2.0 / 256, 1e-9);
}

// Scores of a run are in a row.
using Runs = std::vector<std::vector<double>>;

// By the definition: Welch's t of the runs that are one group, bit by bit of `group`, less the others. One
// run has the spread of the others.
double WelchT(const Runs& runs, uint32_t group, size_t score) {
  double count[2] = {0, 0}, mean[2] = {0, 0}, variance[2] = {0, 0};
  for (size_t run = 0; run < runs.size(); ++run) count[group >> run & 1] += 1;
  for (size_t run = 0; run < runs.size(); ++run) {
    mean[group >> run & 1] += runs[run][score] / count[group >> run & 1];
  }
  for (size_t run = 0; run < runs.size(); ++run) {
    const uint32_t side = group >> run & 1;
    if (count[side] > 1) variance[side] += std::pow(runs[run][score] - mean[side], 2) / (count[side] - 1);
  }
  for (const int side : {0, 1}) {
    if (count[side] == 1) variance[side] = variance[1 - side];
  }
  if (mean[0] == mean[1]) return 0;
  return (mean[1] - mean[0]) / std::sqrt(variance[0] / count[0] + variance[1] / count[1]);
}

TEST(PermutedMaximum, IsThatOfTheDefinitionOverAllWaysToChooseTheRuns) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 101; ++trial) {
    const bool is_drawn = trial == 100;  // 12870 ways, too many to go through
    const size_t num_runs = is_drawn ? 16 : 3 + random() % 6;
    const size_t num_a = is_drawn ? 8 : 1 + random() % (num_runs - 1);
    const std::vector<double> scales = {1, 2, 0.5, 1};
    const double unit = trial % 2 == 0 ? 1 : 1e-14;
    // The last score is always the same, and its mean is rounded.
    Runs runs(num_runs, std::vector<double>(4, trial % 2 == 0 ? 0.1 : -0.7));
    std::vector<double> scores;
    for (size_t run = 0; run < num_runs; ++run) {
      for (size_t score = 0; score < 3; ++score)
        runs[run][score] = unit * (50 + normal(random) + (run < num_a ? 1 : 0));
      scores.insert(scores.end(), runs[run].begin(), runs[run].end());
    }
    const double error = is_drawn ? 0.05 : static_cast<double>(1 + random() % 99) / 200;
    const PermutedMaximum found = PermuteMaximum(scores, num_runs, num_a, scales, error);
    const auto of = [&](uint32_t group) {
      double most = 0;
      for (size_t score = 0; score < 3; ++score) {
        most = std::max(most, std::abs(WelchT(runs, group, score)) / scales[score]);
      }
      return most;
    };
    const uint32_t of_b = (uint32_t{1} << num_runs) - (uint32_t{1} << num_a);
    for (size_t score = 0; score < 3; ++score) EXPECT_NEAR(found.t[score], WelchT(runs, of_b, score), 1e-6);
    EXPECT_EQ(found.t[3], 0);
    EXPECT_NEAR(found.value, of(of_b), 1e-6);
    EXPECT_NEAR(std::abs(found.t[found.largest]) / scales[found.largest], found.value, 1e-12);
    std::vector<double> all;
    int num_at_least = 0;
    for (uint32_t group = 0; group < uint32_t{1} << num_runs; ++group) {
      if (std::bitset<32>(group).count() != std::min(num_a, num_runs - num_a)) continue;
      all.push_back(of(group));
      num_at_least += all.back() >= found.value * (1 - 1e-9) ? 1 : 0;
    }
    std::sort(all.rbegin(), all.rend());
    const double p_value = num_at_least / static_cast<double>(all.size());
    const auto rejected = static_cast<size_t>(error * static_cast<double>(all.size()) + 1e-9);
    EXPECT_NEAR(found.p_value, p_value, is_drawn ? 5 * std::sqrt(p_value / 5000) : 1e-12);
    if (rejected == 0) {
      EXPECT_TRUE(std::isinf(found.critical));
    } else {
      EXPECT_NEAR(found.critical, all[rejected], is_drawn ? 0.1 : 1e-6);
    }
    const double least = (2 * num_a == num_runs ? 2.0 : 1.0) / static_cast<double>(all.size());
    EXPECT_NEAR(SmallestPermutedPValue(num_a, num_runs - num_a), is_drawn ? 1.0 / 5000 : least, 1e-12);
  }
}

TEST(PermutedMaximum, OfManyScoresAThousandWaysAreLookedAt) {
  const size_t num_scores = 45000;
  std::vector<double> scores(20 * num_scores);
  for (size_t run = 0; run < 20; ++run) scores[run * num_scores] = run < 10 ? 0 : 1;
  const std::vector<double> scales(num_scores, 1);
  const PermutedMaximum found = PermuteMaximum(scores, 20, 10, scales, 0.05);
  EXPECT_NEAR(found.p_value, 1e-3, 1e-9);
  EXPECT_TRUE(std::isfinite(found.value)) << "though neither group varies";
}

TEST(PermutedMaximum, IsWrongAsOftenAsItSaysWhateverTheNoise) {
  std::mt19937_64 random(38);
  std::cauchy_distribution<double> step;
  int exact = 0, drawn = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> scores(20 * 8);
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = step(random) + (i % 8 > 0 ? scores[i - 1] : 0);
    drawn += trial < 100 && PermuteMaximum(scores, 20, 10, std::vector<double>(8, 1), 0.05).p_value <= 0.05;
    scores.resize(size_t{10} * 8);
    exact += PermuteMaximum(scores, 10, 5, std::vector<double>(8, 1), 0.05).p_value <= 0.05;
  }
  EXPECT_NEAR(exact, 48, 25);
  EXPECT_LE(drawn, 13);
}

}  // namespace
}  // namespace ott
