#include "examples/train_digits/mlp.h"

#include <cmath>

#include "examples/train_digits/digits.h"
#include "gtest/gtest.h"

namespace ott::examples {
namespace {

constexpr char kData[] = "examples/train_digits/data/digits.csv.gz";

TEST(Digits, FileHasAllImagesAndEveryFifthIsForTesting) {
  const auto digits = ReadDigits(kData);
  ASSERT_TRUE(digits.ok()) << digits.status();
  EXPECT_EQ(digits->count(), 1797);
  const Split split = SplitDigits(*digits);
  EXPECT_EQ(split.test.count(), 359);
  EXPECT_EQ(split.train.count(), 1438);
}

TEST(Digits, MissingFileIsNamed) {
  const auto digits = ReadDigits("no/such/file.csv.gz");
  EXPECT_EQ(digits.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(digits.status().message()).find("no/such/file.csv.gz"), std::string::npos);
}

TEST(BatchSampler, ShardsOfOneBatchAreDisjointAndCoverIt) {
  const auto digits = ReadDigits(kData);
  ASSERT_TRUE(digits.ok());
  const BatchSampler sampler(*digits, 10, 7);
  const Digits whole = sampler.Shard(3, 0, 1);
  ASSERT_EQ(whole.count(), 10);
  std::vector<float> joined;
  for (int rank = 0; rank < 3; ++rank) {
    const Digits shard = sampler.Shard(3, rank, 3);
    joined.insert(joined.end(), shard.images.begin(), shard.images.end());
  }
  EXPECT_EQ(joined, whole.images);
}

TEST(Mlp, GradientsAreTheSlopesOfTheLoss) {
  const auto digits = ReadDigits(kData);
  ASSERT_TRUE(digits.ok());
  const Digits batch = BatchSampler(*digits, 20, 1).Shard(0, 0, 1);
  for (const Kernel kernel : {Kernel::kReference, Kernel::kOptimized}) {
    Mlp mlp(16, 3, kernel);
    mlp.Forward(batch);
    mlp.Backward(batch);
    for (Parameter& parameter : mlp.parameters()) {
      const size_t element = parameter.value.size() / 2;
      const float original = parameter.value[element];
      constexpr float kDelta = 1e-2f;
      parameter.value[element] = original + kDelta;
      const double above = mlp.Forward(batch);
      parameter.value[element] = original - kDelta;
      const double below = mlp.Forward(batch);
      parameter.value[element] = original;
      const double slope = (above - below) / (2 * kDelta);
      EXPECT_NEAR(parameter.gradient[element], slope, 1e-2 * std::max(1.0, std::abs(slope)))
          << parameter.name;
    }
  }
}

TEST(Mlp, KernelsDifferInRoundingOnly) {
  const auto digits = ReadDigits(kData);
  ASSERT_TRUE(digits.ok());
  Mlp reference(64, 3, Kernel::kReference);
  Mlp optimized(64, 3, Kernel::kOptimized);
  const double loss = reference.Forward(*digits);
  const double other_loss = optimized.Forward(*digits);
  EXPECT_NE(loss, other_loss);
  EXPECT_NEAR(loss, other_loss, 1e-5 * loss);
}

TEST(Mlp, LearnsTheDigits) {
  const auto digits = ReadDigits(kData);
  ASSERT_TRUE(digits.ok());
  const Split split = SplitDigits(*digits);
  const BatchSampler sampler(split.train, 128, 1);
  Mlp mlp(64, 1, Kernel::kOptimized);
  for (int64_t iteration = 0; iteration < 200; ++iteration) {
    const Digits batch = sampler.Shard(iteration, 0, 1);
    mlp.Forward(batch);
    mlp.Backward(batch);
    mlp.Step(0.1f, 0.9f, 1.0f / static_cast<float>(batch.count()));
  }
  EXPECT_GE(mlp.Accuracy(split.test), 0.95);
}

}  // namespace
}  // namespace ott::examples
