#include "ott/core/tensor/tensor_statistics.h"

#include <cmath>
#include <complex>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(TensorStatistics, AreThoseOfTheFiniteElements) {
  const float data[6] = {3, -1, NAN, INFINITY, 4, -INFINITY};
  const TensorStatistics statistics = ComputeStatistics(TensorView(data, {2, 3})).value();
  EXPECT_EQ(statistics.min, -1);
  EXPECT_EQ(statistics.max, 4);
  EXPECT_EQ(statistics.mean, 2);
  EXPECT_DOUBLE_EQ(statistics.l2_norm, std::sqrt(26));
  EXPECT_EQ(statistics.num_nan, 1);
  EXPECT_EQ(statistics.num_inf, 2);
}

TEST(TensorStatistics, WithoutFiniteElementsThereIsNoMean) {
  const TensorStatistics statistics = ComputeStatistics(TensorView(nullptr, DType::kFloat32, {0})).value();
  EXPECT_FALSE(statistics.min.has_value());
  EXPECT_FALSE(statistics.max.has_value());
  EXPECT_FALSE(statistics.mean.has_value());
  EXPECT_EQ(statistics.l2_norm, 0);
}

TEST(TensorStatistics, ComplexNumbersCountByTheirMagnitude) {
  // No float holds the magnitude of the last one.
  const std::complex<float> data[] = {{3, 4}, {0, 0}, {2.4e38f, 3.2e38f}};
  const TensorStatistics two = ComputeStatistics(TensorView(data, {2})).value();
  EXPECT_EQ(two.max, 5);
  EXPECT_EQ(two.mean, 2.5);
  EXPECT_NEAR(*ComputeStatistics(TensorView(data, {3}))->max, 4e38, 1e32);
}

TEST(TensorStatistics, StridesAndManyBlocksAreSeen) {
  std::vector<int32_t> data(10000);
  for (int i = 0; i < 10000; ++i) data[i] = i % 2 == 0 ? i : -1000000;
  const TensorStatistics statistics =
      ComputeStatistics(TensorView(data.data(), DType::kInt32, {5000}, {2})).value();
  EXPECT_EQ(statistics.min, 0);
  EXPECT_EQ(statistics.max, 9998);
  EXPECT_EQ(statistics.mean, 4999);
}

}  // namespace
}  // namespace ott
