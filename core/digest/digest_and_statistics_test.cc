#include "ott/core/digest/digest_and_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/chunk_sums.h"
#include "ott/core/digest/digest.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {
namespace {

template <typename T>
DigestAndStatistics Compute(const std::vector<T>& data) {
  auto result = ComputeDigestAndStatistics(TensorView(data.data(), {static_cast<int64_t>(data.size())}));
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

std::vector<float> Normal(int64_t count, uint64_t seed, float deviation = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> result(count);
  for (float& value : result) value = normal(random);
  return result;
}

TEST(SketchedStatistics, TheDigestIsThatOfADigestPassForAllDTypesAndSizes) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> words(20000);
  for (uint64_t& word : words) word = random() & 0x3f3f3f3f3f3f3f3f;
  for (const DTypeInfo& info : kDTypes) {
    for (const int64_t count : {0, 1, 63, 64, 1023, 1024, 1025, 5000, 9999}) {
      const TensorView view(words.data(), info.dtype, {count});
      EXPECT_EQ(ComputeDigestAndStatistics(view)->digest, ComputeDigest(view)->root) << info.name << count;
    }
  }
}

TEST(SketchedStatistics, NormAndLargestMagnitudeAreThoseOfTheElements) {
  for (const int64_t count : {1, 5, 64, 1000, 1024, 70000}) {
    std::vector<float> data = Normal(count, 2);
    data[count / 2] = -9;
    double squares = 0;
    for (const float value : data) squares += static_cast<double>(value) * value;
    const SketchedStatistics statistics = Compute(data).statistics;
    EXPECT_NEAR(statistics.norm, std::sqrt(squares), 1e-6 * std::sqrt(squares)) << count;
    EXPECT_EQ(statistics.max_abs, 9) << count;
    EXPECT_EQ(statistics.num_nan + statistics.num_infinite, 0) << count;
  }
}

TEST(SketchedStatistics, AllDTypesHaveTheStatisticsOfTheirNumbers) {
  for (const DTypeInfo& info : kDTypes) {
    if (!IsFloatingPoint(info.dtype)) continue;
    VisitDType(info.dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, std::complex<float>> &&
                    !std::is_same_v<T, std::complex<double>>) {
        std::vector<T> data(3000);
        for (size_t i = 0; i < data.size(); ++i) data[i] = FromDouble<T>(i % 2 == 0 ? -3 : 4);
        const SketchedStatistics statistics =
            ComputeDigestAndStatistics(TensorView(data.data(), info.dtype, {3000}))->statistics;
        EXPECT_NEAR(statistics.norm, std::sqrt(1500 * 25.0), 1e-3) << info.name;
        EXPECT_EQ(statistics.max_abs, 4) << info.name;
      }
    });
  }
  const std::vector<int64_t> integers(70, int64_t{1} << 40);
  EXPECT_EQ(Compute(integers).statistics.max_abs, std::ldexp(1, 40));
}

TEST(SketchedStatistics, WhatIsNotFiniteIsCountedAndNoPartOfTheRest) {
  std::vector<float> data = Normal(5000, 3);
  const double norm = Compute(data).statistics.norm;
  data.resize(5003);
  data[5000] = std::nanf("");
  data[5001] = std::numeric_limits<float>::infinity();
  data[5002] = -std::numeric_limits<float>::infinity();
  const SketchedStatistics statistics = Compute(data).statistics;
  EXPECT_NEAR(statistics.norm, norm, 1e-6 * norm);
  EXPECT_EQ(statistics.num_nan, 1);
  EXPECT_EQ(statistics.num_infinite, 2);
  EXPECT_LT(statistics.max_abs, 10);
}

TEST(SketchedStatistics, NumbersThatMaskOthersAreNoPartOfTheRest) {
  std::vector<float> data = Normal(5000, 3);
  const SketchedStatistics unmasked = Compute(data).statistics;
  std::vector<float> masked = data;
  for (size_t i = 0; i < masked.size(); i += 5) masked[i] = std::numeric_limits<float>::lowest();
  for (size_t i = 0; i < data.size(); i += 5) data[i] = 0;
  const SketchedStatistics statistics = Compute(masked).statistics;
  EXPECT_EQ(statistics.num_infinite, 1000);
  EXPECT_NEAR(statistics.norm, Compute(data).statistics.norm, 1e-6 * unmasked.norm);
  EXPECT_NEAR(EstimateNormOfDifference(statistics.sketch, Compute(data).statistics.sketch), 0,
              1e-4 * unmasked.norm);
}

TEST(SketchedStatistics, SquaresThatOverflowOrVanishAreNotLost) {
  EXPECT_NEAR(Compute(std::vector<float>(2000, 1e30f)).statistics.norm / (1e30 * std::sqrt(2000.0)), 1, 1e-6);
  EXPECT_NEAR(Compute(std::vector<float>(2000, 1e-30f)).statistics.norm / (1e-30 * std::sqrt(2000.0)), 1,
              1e-6);
}

TEST(SketchedStatistics, TheKernelsOfThisMachineAgreeWithTheOneOfAnyMachine) {
  const std::vector<float> data = Normal(internal::kChunkElements, 4);
  alignas(64) float signs[internal::kChunkElements];
  for (int64_t i = 0; i < internal::kChunkElements; ++i) signs[i] = i % 3 == 0 ? -1 : 1;
  internal::ChunkSums fast;
  internal::ChunkSums portable;
  internal::FastestSumChunk<float>()(data.data(), signs, fast);
  internal::SumChunkPortable<float>(data.data(), signs, portable);
  EXPECT_NEAR(fast.squares, portable.squares, 1e-3);
  EXPECT_EQ(fast.max_abs, portable.max_abs);
  for (int i = 0; i < 16; ++i) EXPECT_NEAR(fast.sums[i], portable.sums[i], 1e-4) << i;
}

TEST(SketchedStatistics, SketchesTellTheNormOfADifferenceWithinTheirInterval) {
  int outside = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    // Differences everywhere, in one element, and the same in all elements.
    const int64_t count = 64 << seed % 10;
    const std::vector<float> a = Normal(count, 100 + seed);
    std::vector<float> b = a;
    const std::vector<float> noise = Normal(count, 500 + seed, 1e-2f);
    for (int64_t i = 0; i < count; ++i) {
      if (seed % 3 == 0) b[i] += noise[i];
      if (seed % 3 == 1) b[i] += 1e-2f;
      if (seed % 3 == 2 && i == static_cast<int64_t>(seed) % count) b[i] += 1;
    }
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
    const double ratio =
        EstimateNormOfDifference(Compute(a).statistics.sketch, Compute(b).statistics.sketch) /
        std::sqrt(squares);
    if (ratio < TensorSketch::kLowFactor || ratio > TensorSketch::kHighFactor) ++outside;
  }
  EXPECT_LE(outside, 3);
}

TEST(SketchedStatistics, SketchesTellTheNormOfColumnsThatDiffer) {
  int outside = 0;
  for (const int64_t columns : {16, 64, 256, 1024, 4096}) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const int64_t rows = 64;
      const std::vector<float> a = Normal(rows * columns, seed);
      std::vector<float> b = a;
      const std::vector<float> noise = Normal(rows, 500 + seed, 1e-2f);
      double squares = 0;
      for (int64_t row = 0; row < rows; ++row) {
        float& value = b[row * columns + static_cast<int64_t>(seed) % columns];
        const float before = value;
        value += noise[row];
        squares += std::pow(static_cast<double>(value) - before, 2);
      }
      const double ratio =
          EstimateNormOfDifference(Compute(a).statistics.sketch, Compute(b).statistics.sketch) /
          std::sqrt(squares);
      if (ratio < TensorSketch::kLowFactor || ratio > TensorSketch::kHighFactor) ++outside;
    }
  }
  EXPECT_LE(outside, 3);
}

TEST(SketchedStatistics, SketchesOfNumbersThatMovedDiffer) {
  const std::vector<float> a = Normal(4096, 7);
  std::vector<float> b = a;
  std::reverse(b.begin(), b.end());
  const double norm = Compute(a).statistics.norm;
  EXPECT_GT(EstimateNormOfDifference(Compute(a).statistics.sketch, Compute(b).statistics.sketch), 0.5 * norm);
}

TEST(SketchedStatistics, SketchesOfOneTensorInTwoDTypesDifferByTheRounding) {
  const std::vector<float> a = Normal(4096, 8);
  std::vector<BFloat16> b;
  for (const float value : a) b.push_back(FromDouble<BFloat16>(value));
  const auto rounded = ComputeDigestAndStatistics(TensorView(b.data(), DType::kBFloat16, {4096}));
  const double norm = Compute(a).statistics.norm;
  const double difference =
      EstimateNormOfDifference(Compute(a).statistics.sketch, rounded->statistics.sketch) / norm;
  EXPECT_GT(difference, 0.0005);
  EXPECT_LT(difference, 0.004);
}

}  // namespace
}  // namespace ott
