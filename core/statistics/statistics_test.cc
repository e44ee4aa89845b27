// Against published tables and examples, and against simulated truth.

#include <cmath>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/family.h"
#include "ott/core/statistics/group_sequential.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/modes.h"
#include "ott/core/statistics/warm_up.h"

namespace ott {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(Distributions, QuantilesAreThoseOfTables) {
  EXPECT_NEAR(NormalQuantile(0.975), 1.959964, 1e-6);
  EXPECT_NEAR(NormalProbability(1.959964), 0.975, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.975, 4), 2.776445, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.995, 18), 2.878440, 1e-6);
  EXPECT_NEAR(StudentTQuantile(0.005, 2), -9.924843, 1e-6);
}

TEST(Distributions, PValueIsTheErrorOfTheIntervalThatEndsAtZero) {
  EXPECT_NEAR(StudentTTwoSidedPValue(2.776445, 4), 0.05, 1e-6);
  EXPECT_NEAR(StudentTTwoSidedPValue(-2.776445, 4), 0.05, 1e-6);
  EXPECT_EQ(StudentTTwoSidedPValue(0, 4), 1);
}

TEST(Distributions, NoNumberIsNoEvidence) {
  EXPECT_EQ(StudentTTwoSidedPValue(NAN, 4), 1);
  EXPECT_EQ(StudentTTwoSidedPValue(-INFINITY, 4), 0);
}

TEST(Location, MedianIsTheMiddleOrBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

TEST(Location, AFewOutliersMoveNeitherMedianNorSpread) {
  EXPECT_EQ(Median({1, 2, 3, 4, 1e9}), 3);
  EXPECT_NEAR(MedianAbsoluteDeviation({1, 2, 3, 4, 1e9}), 1.4826, 1e-12);
}

TEST(Location, SpreadOfNormalSamplesIsTheirStandardDeviation) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(10, 3);
  std::vector<double> samples(20000);
  for (double& sample : samples) sample = normal(random);
  EXPECT_NEAR(MedianAbsoluteDeviation(samples), 3, 0.1);
}

TEST(Family, HolmMultipliesTheSmallestPByAllAndTheLargestByOne) {
  EXPECT_THAT(HolmAdjusted({0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-12), DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12),
                          DoubleNear(0.02, 1e-12)));
  EXPECT_THAT(HolmAdjusted({0.5, 0.9}), ElementsAre(DoubleEq(1), DoubleEq(1)));
  EXPECT_THAT(HolmAdjusted({}), ElementsAre());
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

TEST(BlockedDifference, OfBlocksOfOneEachIsThePairedTest) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < kFirstDrug.size(); ++i) blocks.push_back({{kFirstDrug[i]}, {kSecondDrug[i]}});
  const Estimate estimate = BlockedDifference(blocks);
  EXPECT_EQ(estimate.degrees_of_freedom, 9);
  EXPECT_NEAR(estimate.PValue(), 0.002833, 1e-6);
  EXPECT_NEAR(estimate.IntervalAt(0.05).low, 0.7001142, 1e-6);
}

TEST(BlockedDifference, OfOneBlockIsStudentsTest) {
  const Estimate estimate = BlockedDifference({{kFirstDrug, kSecondDrug}});
  EXPECT_EQ(estimate.degrees_of_freedom, 18);
  EXPECT_NEAR(estimate.PValue(), 0.07919, 1e-5);
}

TEST(BlockedDifference, ShiftsOfWholeBlocksChangeNothing) {
  const Estimate still = BlockedDifference({{{1, 2}, {3, 5}}, {{1, 1.5}, {3, 4}}});
  const Estimate shifted = BlockedDifference({{{1, 2}, {3, 5}}, {{101, 101.5}, {103, 104}}});
  EXPECT_NEAR(shifted.value, still.value, 1e-12);
  EXPECT_NEAR(shifted.standard_error, still.standard_error, 1e-12);
}

TEST(MeanDifference, SamplesThatDoNotVaryAreTakenAtTheirWord) {
  for (const Estimate& same : {WelchDifference({1, 1}, {1, 1}), BlockedDifference({{{1, 1}, {1, 1}}})}) {
    EXPECT_EQ(same.PValue(), 1);
    EXPECT_EQ(same.IntervalAt(0.01).high, 0);
  }
  for (const Estimate& other : {WelchDifference({1, 1}, {2, 2}), BlockedDifference({{{1, 1}, {2, 2}}})}) {
    EXPECT_EQ(other.PValue(), 0);
    EXPECT_EQ(other.IntervalAt(0.01).low, 1);
  }
}

TEST(MeanDifference, IntervalsMissTheTruthAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 20000;
  int missed_by_welch = 0, missed_by_blocks = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> a, b;
    std::vector<Block> blocks;
    for (int block = 0; block < 3; ++block) {
      const double shift = 10 * normal(random);
      blocks.emplace_back();
      for (int i = 0; i < 2; ++i) {
        a.push_back(normal(random));
        b.push_back(0.5 + normal(random));
        blocks.back().a.push_back(shift + a.back());
        blocks.back().b.push_back(shift + b.back());
      }
    }
    const auto misses = [](const Estimate& estimate) {
      const Interval interval = estimate.IntervalAt(0.05);
      return interval.low > 0.5 || interval.high < 0.5;
    };
    missed_by_welch += misses(WelchDifference(a, b));
    missed_by_blocks += misses(BlockedDifference(blocks));
  }
  // Five standard deviations of a count of 5 % of 20,000.
  EXPECT_NEAR(missed_by_welch, 0.05 * kTrials, 155);
  EXPECT_NEAR(missed_by_blocks, 0.05 * kTrials, 155);
}

TEST(GroupSequential, OneLookHasTheWholeError) {
  EXPECT_THAT(GroupSequentialLevels({1}, 0.01), ElementsAre(DoubleNear(0.01, 1e-9)));
}

TEST(GroupSequential, WhoLooksOftenIsNotWrongMoreOften) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 20000;
  for (const int looks : {8, 500}) {
    std::vector<double> information;
    for (int look = looks / 4; look <= looks; ++look) information.push_back(1.0 * look / looks);
    const std::vector<double> levels = GroupSequentialLevels(information, 0.05);
    std::vector<double> bounds;
    for (size_t i = 0; i < levels.size(); ++i) {
      bounds.push_back(-NormalQuantile(levels[i] / 2) * std::sqrt(information[i]));
    }
    int wrong = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      double sum = 0, time = 0;
      for (size_t i = 0; i < information.size(); ++i) {
        sum += std::sqrt(information[i] - time) * normal(random);
        time = information[i];
        if (std::abs(sum) > bounds[i]) {
          ++wrong;
          break;
        }
      }
    }
    EXPECT_NEAR(wrong, 0.05 * kTrials, 155) << looks << " looks";  // five standard deviations
  }
}

TEST(GroupSequential, LevelsOfTKeepTheErrorFromSixSamplesASideOn) {
  std::vector<double> information;
  for (int samples = 6; samples <= 20; samples += 2) information.push_back(samples / 20.0);
  const std::vector<double> levels = GroupSequentialLevels(information, 0.01);
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 20000;
  int wrong = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<Block> blocks;
    for (size_t num_blocks = 1; num_blocks <= 10; ++num_blocks) {
      blocks.push_back({{normal(random), normal(random)}, {normal(random), normal(random)}});
      if (num_blocks >= 3 && BlockedDifference(blocks).PValue() < levels[num_blocks - 3]) {
        ++wrong;
        break;
      }
    }
  }
  EXPECT_NEAR(wrong, 0.01 * kTrials, 71);  // five standard deviations
}

TEST(WarmUp, IsWhereASlowBeginningEnds) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> seconds;
  for (int i = 0; i < 100; ++i) seconds.push_back((i < 20 ? 1.5 : 1) * std::exp(0.01 * normal(random)));
  EXPECT_EQ(WarmUpLength(seconds), 20);
  // Shorter ones are looked at one by one.
  EXPECT_EQ(WarmUpLength({9, 1, 1.01, 0.99, 1, 1.02, 0.98, 1}), 1);
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

TEST(Modes, TwoGroupsAreFoundAndDescribed) {
  const auto modes = FindTwoModes({1.0, 1.01, 0.99, 1.02, 1.5, 1.51, 1.0, 1.49});
  ASSERT_TRUE(modes.has_value());
  EXPECT_EQ(modes->num_low, 5);
  EXPECT_EQ(modes->num_high, 3);
  EXPECT_NEAR(modes->high, 1.5, 1e-9);
}

TEST(Modes, NormalSamplesHaveThemOnceInAThousandTimes) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  int found = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> samples(10);
    for (double& sample : samples) sample = normal(random);
    found += FindTwoModes(samples).has_value();
  }
  EXPECT_LE(found, 3);
  EXPECT_FALSE(FindTwoModes({1, 1, 1, 1, 1, 1, 1}).has_value());
  EXPECT_FALSE(FindTwoModes({1, 1, 2, 2}).has_value());
}

TEST(Modes, OneSlowSampleIsNoMode) {
  EXPECT_FALSE(FindTwoModes({1.0, 1.01, 0.99, 1.02, 0.98, 1.03, 1.0, 9.0}).has_value());
}

TEST(Modes, FewSamplesMayBeSeparatedByThem) {
  EXPECT_NEAR(SeparationProbability(3, 3), 2.0 / 64, 1e-9);
  EXPECT_NEAR(SeparationProbability(4, 4), 2.0 / 256, 1e-9);
  // One sample is in the rarer mode alone with a high probability.
  EXPECT_GT(SeparationProbability(1, 10), 0.03);
}

}  // namespace
}  // namespace ott
