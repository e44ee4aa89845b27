#include "ott/core/op_cost/op_cost.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/op_cost/op_cost_for_test.h"
#include "gtest/gtest.h"

namespace ott::op_cost_for_test {
namespace {

TEST(OpCost, TypesByNumberAreThoseByName) {
  const std::pair<int, const char*> types[] = {
      {0, "uint8"},   {1, "int8"},      {2, "int16"},        {3, "int32"},          {4, "int64"},
      {5, "float16"}, {6, "float32"},   {7, "float64"},      {9, "complex64"},      {10, "complex128"},
      {11, "bool"},   {15, "bfloat16"}, {23, "float8_e5m2"}, {24, "float8_e4m3fn"}, {27, "uint16"},
      {28, "uint32"}, {29, "uint64"}};
  for (const auto& [number, name] : types) {
    const OpCost by_name = CostOf(Op("to", {T({10}), Text("dtype", name)}), kForward, std::nullopt);
    const OpCost by_number =
        CostOf(Op("to", {T({10}), N("dtype", {static_cast<double>(number)})}), kForward, std::nullopt);
    ASSERT_TRUE(by_name.bytes.has_value()) << name;
    EXPECT_EQ(by_number.bytes, by_name.bytes) << name;
  }
}

TEST(OpCost, MessagesOfCollectivesAndWhatTravels) {
  const std::tuple<std::string, double, double> cases[] = {{"all_reduce", 4000, 6000},
                                                           {"reduce_scatter", 4000, 3000},
                                                           {"all_gather", 16000, 12000},
                                                           {"send", 4000, 4000}};
  for (const auto& [op, message, bus] : cases) {
    const OpCost cost = CostOf(Op(op, {T({1000}), N("world_size", {4})}), kForward, std::nullopt);
    EXPECT_EQ(cost.message_bytes, message) << op;
    EXPECT_EQ(cost.bus_bytes, bus) << op;
  }
  EXPECT_EQ(CostOf(Op("all_reduce", {T({1000}), N("world_size", {1})}), kForward, std::nullopt).bus_bytes, 0);
  const OpCost alone = CostOf(Op("all_reduce", {T({1000})}), kForward, std::nullopt);
  EXPECT_EQ(alone.message_bytes, 4000);
  EXPECT_FALSE(alone.bus_bytes.has_value());
  const OpCost two = CostOf(Op("allreduce_coalesced_", {T({500}, kBF16), T({1000}), N("world_size", {4})}),
                            kForward, std::nullopt);
  EXPECT_EQ(two.message_bytes, 5000);
  EXPECT_EQ(two.bus_bytes, 7500);
  EXPECT_EQ(two.flops, 1125);
  OpDescription part = Op("reduce_scatter_", {T({1000}), N("world_size", {4})});
  part.module = "c10d";  // which tells the result alone
  OpDescription whole = part;
  whole.op = "allgather_";
  EXPECT_EQ(CostOf(whole, kForward, std::nullopt).message_bytes, 16000);
  EXPECT_FALSE(CostOf(part, kForward, std::nullopt).message_bytes.has_value());
  part.arguments.push_back(T({4000}));
  EXPECT_EQ(CostOf(part, kForward, std::nullopt).message_bytes, 16000);
}

TEST(OpCost, AnUnknownOpIsNotFree) {
  const OpCost cost = CostOf(Op("frobnicate", {T({10}), T({3, 4}, kI64)}), kForward, std::nullopt);
  EXPECT_FALSE(cost.flops.has_value());
  EXPECT_FALSE(cost.bytes.has_value());
  EXPECT_EQ(cost.params, "[10]float32;[3,4]int64");
  std::vector<OpArgument> tensors = {T({1}), T({2}, std::nullopt), T({3}), T({4})};
  const std::string four = "[1]float32;[2];[3]float32;[4]float32";
  EXPECT_EQ(CostOf(Op("frobnicate", tensors), kForward, std::nullopt).params, four);
  tensors.push_back(T({5}));
  EXPECT_EQ(CostOf(Op("frobnicate", tensors), kForward, std::nullopt).params, four + ";+1");
}

TEST(OpCost, BackwardPassesOfProductsAndConvolutionsComputeTwoGradients) {
  for (const auto& [op, pass, is_two] : {std::tuple("mm", kBackward, true),
                                         {"conv2d", kBackward, true},
                                         {"convolution_backward", kForward, true},
                                         {"mm", kForward, false},
                                         {"mm", OpPass::kInputGradient, false},
                                         {"relu", kBackward, false}}) {
    EXPECT_EQ(ComputesTwoGradients(Op(op, {}), pass), is_two) << op;
  }
}

TEST(OpCost, BytesNeedAType) {
  const OpDescription op = Op("mm", {T({2, 3}, std::nullopt), T({3, 4}, std::nullopt)});
  EXPECT_EQ(CostOf(op, kForward, std::nullopt).flops, 48);
  EXPECT_FALSE(CostOf(op, kForward, std::nullopt).bytes.has_value());
  EXPECT_EQ(CostOf(op, kForward, kBF16).bytes, 52);
  // A condition or a mask is bool.
  const OpArgument six = T({6}, std::nullopt);
  for (const auto& [name, arguments, bytes] : {std::tuple("add", std::vector<OpArgument>{six, six}, 36),
                                               {"where", {six, six, six}, 42},
                                               {"masked_fill", {six, six}, 30},
                                               {"zeros", {N("size", {6})}, 12}}) {
    EXPECT_EQ(CostOf(Op(name, arguments), kForward, kBF16).bytes, bytes) << name;
  }
}

TEST(OpCost, ParametersAreSizesAndThoseOfAProductColumnMajor) {
  const OpArgument q = T({2, 8, 16, 64}), x = T({5, 2, 3}), state = T({1, 2, 4});
  OpDescription labels = Op("lstm", {x, T({16, 3}), T({16, 4}), state});
  labels.tensors_only = true;
  const std::tuple<OpDescription, std::string, std::vector<int64_t>> cases[] = {
      {Op("mm", {T({1'048'579, 64}), T({64, 128})}), "M=128,N=1048579,K=64,float32", {128, 1'048'579, 64}},
      {Op("mm", {T({2, 3}, std::nullopt), T({3, 4})}), "M=4,N=2,K=3", {4, 2, 3}},
      {Op("bmm", {T({7, 2, 3}), T({7, 3, 4})}), "B=7,M=4,N=2,K=3,float32", {4, 2, 3}},
      {Op("conv2d", {T({1, 2, 5, 5}), T({4, 2, 3, 3})}),
       "N=1,C=2,in=5x5,K=4,out=3x3,kernel=3x3,g=1,float32",
       {2, 4}},
      {Op("conv2d", {T({1, 4, 5, 5}), T({4, 2, 3, 3})}),
       "N=1,C=4,in=5x5,K=4,out=3x3,kernel=3x3,g=2,float32",
       {}},
      {Op("scaled_dot_product_attention", {q, q, q, N("is_causal", {1})}),
       "heads=16,L=16,S=16,E=64,causal=1,float32",
       {}},
      {Op("scaled_dot_product_attention", {q, q, q}), "heads=16,L=16,S=16,E=64,causal=0,float32", {}},
      {Op("_flash_attention_backward", {q, q, q, q}), "heads=32,L=8,S=8,E=64,float32", {}},
      {Op("lstm", {x, state}), "steps=10,I=3,H=4,layers=1,float32", {}},
      {labels, "steps=10,I=3,H=4,float32", {}},
      {Op("relu", {T({2, 3})}), "[2,3]float32", {}}};
  for (const auto& [op, params, sizes] : cases) {
    const OpCost cost = CostOf(op, kForward, std::nullopt);
    EXPECT_EQ(cost.params, params);
    EXPECT_EQ(cost.matrix_sizes, sizes) << params;
  }
}

TEST(OpCost, NoShapeOfAnyOpEndsTheProgram) {
  const std::vector<Shape> shapes = {
      {}, {0}, {1}, {0, 0}, {2, 3}, {3, 4, 5}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1}};
  const std::vector<std::string> ops = absl::StrSplit(
      "mm linear conv2d conv_transpose3d convolution_backward lstm gru_cell scaled_dot_product_attention "
      "layer_norm batch_norm group_norm max_pool2d avg_pool3d _pool embedding cross_entropy "
      "nll_loss_backward "
      "adam index index_select scatter sum all_gather cat where _ __ _backward softmax_backward_data ",
      ' ');
  for (const std::string& op : ops) {
    for (const Shape& first : shapes) {
      for (const Shape& second : shapes) {
        for (const OpPass pass : {kForward, kBackward, OpPass::kInputGradient, OpPass::kWeightGradient}) {
          const std::vector<OpArgument> few = {T(first)};
          const std::vector<OpArgument> many = {
              T(first),         T(second),       T(first), N("dim", {-9}), N("kernel_size", {0}),
              N("stride", {0}), N("groups", {0})};
          for (const auto& arguments : {few, many}) {
            const OpCost cost = CostOf(Op(op, arguments), pass, std::nullopt);
            EXPECT_FALSE(cost.flops.has_value() && !(*cost.flops >= 0)) << op;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ott::op_cost_for_test
