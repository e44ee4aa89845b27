#include "ott/core/digest/digest_and_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
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

// Returns the estimated norm of the difference of the two tensors.
double EstimateNormOfDifference(const TensorSketch& a, const TensorSketch& b) {
  double squares = 0;
  for (int i = 0; i < TensorSketch::kNumSums; ++i) {
    const double difference = static_cast<double>(a.sums[i]) - b.sums[i];
    squares += difference * difference;
  }
  // Each element is in one sum.
  return std::sqrt(squares);
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

// Magnitudes from 2^-24 to 1, all of which a Float16 has.
std::vector<float> OfManyMagnitudes(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> result = Normal(count, seed);
  for (float& value : result) value = std::ldexp(value, -static_cast<int>(random() % 24));
  return result;
}

template <typename T>
void ExpectThatAllKernelsSum(const std::vector<float>& values) {
  const internal::ChunkPattern& pattern = internal::PatternOfChunk();
  std::vector<T> data;
  for (const float value : values) data.push_back(FromDouble<T>(value));
  double squares = 0;
  double max_abs = 0;
  double sums[16] = {};
  double magnitudes[16] = {};
  for (int64_t i = 0; i < internal::kChunkElements; ++i) {
    const auto value = static_cast<double>(data[i]);
    squares += value * value;
    max_abs = std::max(max_abs, std::fabs(value));
    sums[internal::SumOf(i)] += value * pattern.signs[i];
    magnitudes[internal::SumOf(i)] += std::fabs(value);
  }
  for (internal::SumChunk* const sum_chunk : internal::SumChunksOfThisMachine<T>()) {
    internal::ChunkSums result;
    sum_chunk(data.data(), pattern, result);
    EXPECT_NEAR(result.squares, squares, 1e-5 * squares);
    EXPECT_EQ(result.max_abs, max_abs);
    for (int i = 0; i < 16; ++i) EXPECT_NEAR(result.sums[i], sums[i], 1e-6 * magnitudes[i]) << i;
  }
}

TEST(SketchedStatistics, AllKernelsOfThisMachineSumWhatThereIs) {
  for (const std::vector<float>& values :
       {Normal(internal::kChunkElements, 4), OfManyMagnitudes(internal::kChunkElements, 5)}) {
    ExpectThatAllKernelsSum<float>(values);
    ExpectThatAllKernelsSum<Float16>(values);
    ExpectThatAllKernelsSum<BFloat16>(values);
  }
}

template <typename T>
void ExpectThatAllKernelsNotice(float value) {
  for (internal::SumChunk* const sum_chunk : internal::SumChunksOfThisMachine<T>()) {
    // Each place of what is read at once, and the last.
    for (int64_t place = 0; place <= 128; ++place) {
      std::vector<T> data(internal::kChunkElements, FromDouble<T>(1));
      data[place == 128 ? internal::kChunkElements - 1 : place] = FromDouble<T>(value);
      internal::ChunkSums result;
      sum_chunk(data.data(), internal::PatternOfChunk(), result);
      EXPECT_FALSE(std::isfinite(result.squares)) << value << " at " << place;
    }
  }
}

TEST(SketchedStatistics, AllKernelsOfThisMachineNoticeWhatIsNotFinite) {
  for (const float value : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    ExpectThatAllKernelsNotice<float>(value);
    ExpectThatAllKernelsNotice<Float16>(value);
    ExpectThatAllKernelsNotice<BFloat16>(value);
  }
}

// By the definition; the sketch is the same as of doubles, which are summed one by one.
template <typename T>
void ExpectStatisticsOfDoubles(const std::vector<float>& values, const std::string& what) {
  std::vector<T> data;
  std::vector<double> doubles;
  SketchedStatistics expected;
  double squares = 0;
  for (const float value : values) {
    data.push_back(FromDouble<T>(value));
    doubles.push_back(static_cast<double>(data.back()));
    const double magnitude = std::fabs(doubles.back());
    expected.num_nan += std::isnan(magnitude);
    expected.num_infinite += magnitude > 1e35;
    if (!(magnitude <= 1e35)) continue;
    squares += magnitude * magnitude;
    expected.max_abs = std::max(expected.max_abs, magnitude);
  }
  expected.norm = std::sqrt(squares);
  const SketchedStatistics statistics = Compute(data).statistics;
  expected.sketch = Compute(doubles).statistics.sketch;
  EXPECT_NEAR(statistics.norm, expected.norm, 1e-6 * expected.norm) << what;
  EXPECT_EQ(statistics.max_abs, expected.max_abs) << what;
  EXPECT_EQ(statistics.num_nan, expected.num_nan) << what;
  EXPECT_EQ(statistics.num_infinite, expected.num_infinite) << what;
  for (int i = 0; i < TensorSketch::kNumSums; ++i) {
    const float sum = expected.sketch.sums[i];
    if (std::isinf(sum)) {
      EXPECT_EQ(statistics.sketch.sums[i], sum) << what << ", sum " << i;
    } else {
      EXPECT_NEAR(statistics.sketch.sums[i], sum, TensorSketch::kResolution * expected.norm)
          << what << ", sum " << i;
    }
  }
}

TEST(SketchedStatistics, AnyNumbersOfAnyDTypeHaveTheStatisticsOfDoubles) {
  for (const int64_t count : {1, 63, 64, 65, 1000, 2047, 2048, 2049, 4097, 40001}) {
    // The last of each chunk, and those around it, are special.
    const auto with = [&](float special) {
      std::vector<float> values = OfManyMagnitudes(count, static_cast<uint64_t>(count));
      for (int64_t i = 2047; i < count; i += 2048) values[i] = special;
      values[count / 2] = special;
      return values;
    };
    const float infinity = std::numeric_limits<float>::infinity();
    const auto many = static_cast<size_t>(count);
    for (const auto& [what, values] : std::vector<std::pair<std::string, std::vector<float>>>{
             {"all magnitudes", OfManyMagnitudes(count, 9)},
             {"zeros", std::vector<float>(many, -0.0f)},
             {"NaN", with(std::nanf(""))},
             {"infinities", with(-infinity)},
             {"one that is huge", with(3e38f)},
             {"squares that overflow", std::vector<float>(many, 2e19f)},
             {"squares that just do not", std::vector<float>(many, 5e18f)},
             {"squares that vanish", std::vector<float>(many, 1e-25f)},
             {"one that is denormal", with(1e-39f)},
             {"denormals", std::vector<float>(many, 1e-39f)}}) {
      const std::string of = what + ", " + std::to_string(count);
      ExpectStatisticsOfDoubles<double>(values, "float64 " + of);
      ExpectStatisticsOfDoubles<float>(values, "float32 " + of);
      ExpectStatisticsOfDoubles<BFloat16>(values, "bfloat16 " + of);
      ExpectStatisticsOfDoubles<Float16>(values, "float16 " + of);
      ExpectStatisticsOfDoubles<Float8E4M3>(values, "float8_e4m3 " + of);
      ExpectStatisticsOfDoubles<Float8E5M2>(values, "float8_e5m2 " + of);
    }
  }
}

TEST(SketchedStatistics, NumbersBesideWhichOthersVanishAreNotLost) {
  // The size is one that is summed quickly, and the squares are below the smallest normal number.
  std::vector<float> values(2048, 1e-19f);
  values[5] = 1.001e-14f;
  ExpectStatisticsOfDoubles<float>(values, "float32");
  ExpectStatisticsOfDoubles<BFloat16>(values, "bfloat16");
}

TEST(SketchedStatistics, SketchesTellTheNormOfADifferenceWithinTheirInterval) {
  int outside = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const int64_t count = 64 << seed % 10;
    const std::vector<float> a = Normal(count, 100 + seed);
    std::vector<float> b = a;
    const std::vector<float> noise = Normal(count, 500 + seed, 1e-2f);
    for (int64_t i = 0; i < count; ++i) {
      // Everywhere, the same in all elements, in one of them, or in a column of a matrix of 64 rows.
      if (seed % 5 == 0) b[i] += noise[i];
      if (seed % 5 == 1) b[i] += 1e-2f;
      if (seed % 5 == 2 && i == static_cast<int64_t>(seed) % count) b[i] += 1;
      if (seed % 5 == 3 && i % (count / 64) == static_cast<int64_t>(seed) % (count / 64)) b[i] += noise[i];
    }
    // Elements that have moved are another tensor, too.
    if (seed % 5 == 4) std::reverse(b.begin(), b.end());
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
    const double ratio =
        EstimateNormOfDifference(Compute(a).statistics.sketch, Compute(b).statistics.sketch) /
        std::sqrt(squares);
    if (ratio < TensorSketch::kLowFactor || ratio > TensorSketch::kHighFactor) ++outside;
  }
  EXPECT_LE(outside, 6);
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
