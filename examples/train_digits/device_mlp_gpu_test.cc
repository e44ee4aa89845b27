// Needs a GPU.

#include <cmath>
#include <vector>

#include "examples/train_digits/device_mlp.h"
#include "examples/train_digits/digits.h"
#include "examples/train_digits/mlp.h"
#include "gtest/gtest.h"

namespace ott::examples {
namespace {

constexpr int kHidden = 24;
constexpr int kIterations = 20;

// Largest difference of the weights, over all.
double Train(Kernel kernel) {
  const Digits digits = *ReadDigits("examples/train_digits/data/digits.csv.gz");
  Mlp host(kHidden, 1, kernel);
  Mlp copy(kHidden, 1, kernel);
  const auto device = CreateDeviceMlp(copy, kernel, 33, *DeviceOfRank(0));
  EXPECT_TRUE(device.ok()) << device.status();
  BatchSampler sampler(digits, 33, 1);
  double first_loss = 0, last_loss = 0;
  for (int i = 0; i < kIterations; ++i) {
    const Digits batch = sampler.Shard(i, 0, 1);
    const double expected = host.Forward(batch);
    host.Backward(batch);
    host.Step(0.1f, 0.9f, 1.0f / 33);
    last_loss = *(*device)->Forward(batch);
    if (i == 0) first_loss = last_loss;
    EXPECT_NEAR(last_loss, expected, 1e-3 * expected) << "iteration " << i;
    EXPECT_TRUE((*device)->Backward().ok());
    EXPECT_TRUE((*device)->Step(0.1f, 0.9f, 1.0f / 33).ok());
  }
  EXPECT_LT(last_loss, first_loss / 2);
  EXPECT_TRUE((*device)->ValuesToHost().ok());
  double largest = 0;
  for (size_t i = 0; i < host.parameters().size(); ++i) {
    const std::vector<float>& expected = host.parameters()[i].value;
    for (size_t j = 0; j < expected.size(); ++j) {
      largest = std::fmax(largest, std::fabs(expected[j] - copy.parameters()[i].value[j]));
    }
  }
  return largest;
}

TEST(DeviceMlp, LearnsWhatMlpLearns) { EXPECT_LT(Train(Kernel::kReference), 1e-3); }

TEST(DeviceMlp, LearnsTheSameWithTheOptimizedKernel) { EXPECT_LT(Train(Kernel::kOptimized), 1e-3); }

}  // namespace
}  // namespace ott::examples
