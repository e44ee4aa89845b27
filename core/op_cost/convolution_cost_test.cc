#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/op_cost/op_cost_for_test.h"
#include "gtest/gtest.h"
#include "ott/core/op_cost/op_cost.h"

namespace ott::op_cost_for_test {
namespace {

// Each element of the weight makes a product with each place of its kernel.
TEST(OpCost, ConvolutionsOfAnySizesAreThoseOfEachPlaceOfTheKernel) {
  std::mt19937 random(1);
  const auto any = [&](int most) { return 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(most)); };
  for (int trial = 0; trial < 300; ++trial) {
    const bool is_transposed = random() % 2 == 0;
    const int64_t groups = any(3), in = any(2), out = any(2), batch = any(2), padding = any(3) - 1;
    const int64_t stride = any(3), dilation = any(2);
    Shape x = {batch, groups * in},
          w = {is_transposed ? groups * in : groups * out, is_transposed ? out : in};
    Shape y = {batch, groups * out};
    int64_t places = batch * groups * in * out;
    for (int i = 0; i < 2; ++i) {
      const int64_t size = 3 + any(5), kernel = any(3), reach = dilation * (kernel - 1);
      x.push_back(size);
      w.push_back(kernel);
      int64_t count = 0;
      for (int64_t at = -padding; at + reach < size + padding; at += stride) ++count;
      y.push_back(is_transposed ? (size - 1) * stride + reach + 1 - 2 * padding : count);
      places *= kernel * (is_transposed ? size : count);
    }
    if (y[2] < 1 || y[3] < 1) continue;
    const auto elements = [](const Shape& shape) {
      return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    };
    std::vector<OpArgument> arguments = {T(x), T(w), N("stride", {static_cast<double>(stride)}),
                                         N("padding", {static_cast<double>(padding)}),
                                         N("dilation", {static_cast<double>(dilation)})};
    if (is_transposed || random() % 2 == 0) arguments.push_back(N("groups", {static_cast<double>(groups)}));
    const OpCost cost =
        CostOf(Op(is_transposed ? "conv_transpose2d" : "conv2d", arguments), kForward, std::nullopt);
    EXPECT_EQ(cost.flops, 2 * places) << cost.params;
    EXPECT_EQ(cost.bytes, 4 * (elements(x) + elements(w) + elements(y))) << cost.params;
  }
}

// The arguments of convolutions are in the order of PyTorch's schemas, as torch.ops.aten of 2.13 prints them.
TEST(OpCost, ConvolutionsByPositionAreThoseByName) {
  const std::pair<const char*, const char*> schemas[] = {
      {"conv1d", "bias stride padding dilation groups"},
      {"conv2d", "bias stride padding dilation groups"},
      {"conv3d", "bias stride padding dilation groups"},
      {"conv_transpose1d", "bias stride padding output_padding groups dilation"},
      {"conv_transpose2d", "bias stride padding output_padding groups dilation"},
      {"conv_transpose3d", "bias stride padding output_padding groups dilation"},
      {"convolution", "bias stride padding dilation transposed output_padding groups"},
      {"convolution_overrideable", "bias stride padding dilation transposed output_padding groups"},
      {"cudnn_convolution", "padding stride dilation groups"},
      {"cudnn_convolution_transpose", "padding output_padding stride dilation groups"},
      {"cudnn_convolution_relu", "bias stride padding dilation groups"},
      {"miopen_convolution", "bias padding stride dilation groups"},
      {"miopen_depthwise_convolution", "bias padding stride dilation groups"},
      {"miopen_convolution_transpose", "bias padding output_padding stride dilation groups"},
      {"miopen_convolution_relu", "bias stride padding dilation groups"},
      {"mkldnn_convolution", "bias padding stride dilation groups"},
      {"_conv_depthwise2d", "kernel_size bias stride padding dilation"},
      {"conv_depthwise3d", "kernel_size bias stride padding dilation"},
      {"thnn_conv2d", "kernel_size bias stride padding"},
      {"_slow_conv2d_forward", "kernel_size bias stride padding"},
      {"slow_conv3d", "kernel_size bias stride padding"},
      {"slow_conv3d_forward", "kernel_size bias stride padding"},
      {"slow_conv_dilated2d", "kernel_size bias stride padding dilation"},
      {"slow_conv_dilated3d", "kernel_size bias stride padding dilation"},
      {"slow_conv_transpose2d", "kernel_size bias stride padding output_padding dilation"},
      {"slow_conv_transpose3d", "kernel_size bias stride padding output_padding dilation"},
  };
  for (const auto& [name, schema] : schemas) {
    const std::string_view op = name;
    const size_t dimensions = op.find("1d") != op.npos ? 1 : op.find("3d") != op.npos ? 3 : 2;
    const std::vector<std::string> parameters = absl::StrSplit(schema, ' ');
    const bool has_groups = std::count(parameters.begin(), parameters.end(), "groups") > 0;
    for (const bool transposed : {false, true}) {
      Shape x(dimensions + 2, 20), w(dimensions + 2, 3);
      x[0] = 1;
      x[1] = w[0] = 4;
      w[1] = has_groups ? 2 : 4;
      std::vector<OpArgument> by_position = {T(x), T(w)}, by_name = {T(x), T(w)};
      for (const std::string& parameter : parameters) {
        const auto all = [&](double value) { return std::vector<double>(dimensions, value); };
        const std::vector<double> numbers = parameter == "bias"          ? std::vector<double>()
                                            : parameter == "kernel_size" ? all(3)
                                            : parameter == "stride"      ? all(4)
                                            : parameter == "padding"     ? all(2)
                                            : parameter == "dilation"    ? all(5)
                                            : parameter == "transposed"
                                                ? std::vector<double>{transposed ? 1.0 : 0.0}
                                            : parameter == "groups" ? std::vector<double>{2}
                                                                    : all(1);
        by_position.push_back(N("", numbers));
        if (!numbers.empty() && parameter != "kernel_size") by_name.push_back(N(parameter, numbers));
      }
      const OpCost expected = CostOf(Op(name, by_name), kForward, std::nullopt);
      const OpCost cost = CostOf(Op(name, by_position), kForward, std::nullopt);
      ASSERT_TRUE(expected.flops.has_value()) << name;
      EXPECT_EQ(cost.flops, expected.flops) << name;
      EXPECT_EQ(cost.bytes, expected.bytes) << name;
    }
  }
}

}  // namespace
}  // namespace ott::op_cost_for_test
