#include "ott/core/dumper/finite_differences.h"

#include <cmath>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(FiniteDifferences, AreTheDerivatives) {
  double x[2] = {3, -2};
  float y[2][2] = {{0.5, 1}, {2, 0}};
  const auto function = [&] { return x[0] * x[0] * x[1] + std::sin(y[0][0]) + 4 * y[1][0]; };
  const NamedTensor tensors[] = {
      {"x", Tensor{TensorView(x, {2}), nullptr}},
      // Transposed, so the gradient is too.
      {"y", Tensor{TensorView(y, DType::kFloat32, {2, 2}, {1, 2}), nullptr}},
  };
  const std::vector<Gradient> gradients = FiniteDifferences(function)(tensors).value();
  const double* const dx = static_cast<const double*>(gradients[0].gradient->view.data());
  EXPECT_NEAR(dx[0], 2 * 3 * -2, 1e-5);
  EXPECT_NEAR(dx[1], 9, 1e-5);
  const float* const dy = static_cast<const float*>(gradients[1].gradient->view.data());
  EXPECT_NEAR(dy[0], std::cos(0.5), 1e-4);
  EXPECT_NEAR(dy[1], 4, 1e-4);
  EXPECT_EQ(dy[2], 0);
  EXPECT_EQ(dy[3], 0);
  EXPECT_EQ(x[0], 3);
  EXPECT_EQ(y[1][0], 2);
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
