#include "ott/core/dumper/finite_differences.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(FiniteDifferences, AreTheDerivatives) {
  double x[2] = {3.1, -2.3};
  float y[2][2] = {{0.7f, 1.1f}, {2.3f, 0}};
  const std::vector<double> x_before(x, x + 2);
  const std::vector<float> y_before(y[0], y[0] + 4);
  const auto function = [&] { return x[0] * x[0] * x[1] + std::sin(y[0][0]) + 4 * y[1][0]; };
  const NamedTensor tensors[] = {
      {"x", Tensor{TensorView(x, {2}), nullptr}},
      // Transposed, so the gradient is too.
      {"y", Tensor{TensorView(y, DType::kFloat32, {2, 2}, {1, 2}), nullptr}},
  };
  const std::vector<Gradient> gradients = FiniteDifferences(function)(tensors).value();
  const double* const dx = static_cast<const double*>(gradients[0].gradient->view.data());
  EXPECT_NEAR(dx[0], 2 * 3.1 * -2.3, 1e-5);
  EXPECT_NEAR(dx[1], 3.1 * 3.1, 1e-5);
  const float* const dy = static_cast<const float*>(gradients[1].gradient->view.data());
  EXPECT_NEAR(dy[0], std::cos(0.7), 1e-4);
  EXPECT_NEAR(dy[1], 4, 1e-4);
  EXPECT_EQ(dy[2], 0);
  EXPECT_EQ(dy[3], 0);
  EXPECT_EQ(std::vector<double>(x, x + 2), x_before);
  EXPECT_EQ(std::vector<float>(y[0], y[0] + 4), y_before);
}

TEST(FiniteDifferences, OfIntegersAreAnError) {
  const int32_t x = 1;
  const NamedTensor tensor = {"x", Tensor{TensorView(&x, {}), nullptr}};
  const auto zero = [] { return 0.0; };
  EXPECT_EQ(FiniteDifferences(zero)({&tensor, 1}).status().message(),
            "'x': finite differences are taken of float32 and float64 tensors in host memory");
}

}  // namespace
}  // namespace ott
