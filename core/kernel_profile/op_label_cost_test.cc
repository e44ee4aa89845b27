// Labels as PyTorch's NVTX observer, our LibTorch integration and OpRange write them, to FLOPs and bytes
// computed by hand.

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/kernel_profile/op_label.h"
#include "ott/core/op_cost/op_cost.h"

namespace ott::kernels {
namespace {

constexpr double kNa = std::numeric_limits<double>::quiet_NaN();

struct Case {
  std::string label;
  double flops;
  double bytes;  // of float32, where the label tells no type
};

void Check(const std::vector<Case>& cases) {
  const auto known = [](double value) {
    return std::isnan(value) ? std::nullopt : std::optional<double>(value);
  };
  for (const Case& c : cases) {
    const OpLabel label = ParseLabel(SplitLabel(c.label));
    ASSERT_EQ(label.kind, c.label[0] == '{' ? OpLabel::Kind::kMarker : OpLabel::Kind::kOp) << c.label;
    ASSERT_FALSE(label.is_backward_node) << c.label;
    const OpCost cost = CostOf(label.description, OpPass::kForward, DType::kFloat32);
    EXPECT_EQ(cost.flops, known(c.flops)) << c.label;
    EXPECT_EQ(cost.bytes, known(c.bytes)) << c.label;
  }
}

TEST(OpLabelCost, ProductsAndConvolutions) {
  Check({
      {"aten::addmm, seq = 3, op_id = 9, sizes = [[4], [2, 3], [3, 4], [], []], input_op_ids = [(1,0)]", 56,
       120},
      {"aten::_scaled_mm, sizes = [[2, 3], [3, 4], [], [], [], [], [], []]", 48, 104},
      // Rows of one matrix for each of two weights; columns of one; and a sum for each group.
      {"aten::_grouped_mm, sizes = [[6, 3], [2, 3, 4], [2], [], []]", 144, 4 * (18 + 24 + 24)},
      {"aten::_grouped_mm, sizes = [[2, 6, 3], [3, 4], [2], [], []]", 144, 4 * (36 + 12 + 24)},
      {"aten::_grouped_mm, sizes = [[6, 3], [3, 4], [2], [], []]", 144, 4 * (18 + 12 + 48)},
      {"aten::_scaled_grouped_mm, sizes = [[6, 3], [3, 4], [6], [4], [2], [], [], [], []]", 144, 4 * 78},
      {"aten::cudnn_convolution, sizes = [[64, 64, 56, 56], [64, 64, 1, 1], [], [], [], [], [], [], []]", kNa,
       kNa},
      {"aten::convolution_backward, sizes = [[1, 4, 3, 3], [1, 2, 5, 5], [4, 2, 3, 3], [], [], [], [], [], "
       "[], [], []]",
       2592, 1264},
      // A transposed one: it has as many channels before and after, but twice the size.
      {"aten::convolution_backward, sizes = [[1, 4, 6, 6], [1, 4, 3, 3], [4, 4, 2, 2], [], [], [], [], [], "
       "[], [], []]",
       2 * 2 * 36 * 16, 2 * 4 * (144 + 36 + 64)},
  });
}

TEST(OpLabelCost, AttentionAndRecurrentNetworks) {
  const std::string qkv = "[2, 16, 8, 64], [2, 16, 8, 64], [2, 16, 8, 64], ";
  Check({
      // The label does not tell whether it is causal.
      {"aten::_flash_attention_forward, sizes = [" + qkv + "[], [], [], [], [], [], [], []]", kNa,
       4 * 4 * 16384 + 4 * 256},
      {"aten::_flash_attention_backward, sizes = [[2, 16, 8, 64], " + qkv +
           "[2, 16, 8, 64], [2, 8, 16], [], [], [], [], [], [], [2], [], []]",
       kNa, 8 * 4 * 16384 + 4 * 256},
      {"aten::_efficient_attention_forward, sizes = [" + qkv +
           "[2, 8, 16, 16], [], [], [], [], [], [], [], []]",
       kNa, 4 * 4 * 16384 + 4 * 4096 + 4 * 256},
      // Sequences of unlike lengths, one after the other.
      {"aten::_flash_attention_forward, sizes = [[40, 8, 64], [40, 8, 64], [40, 8, 64], [3], [3], [], [], "
       "[], [], []]",
       kNa, kNa},
      // An LSTM of two layers.
      {"aten::_cudnn_rnn, sizes = [[5, 2, 3], [16, 3], [16, 4], [16], [16], [16, 4], [16, 4], [16], [16], "
       "[], [304], [2, 2, 4], [2, 2, 4], [], [], [], [], [], [], [], [], [], []]",
       10 * (2 * 16 * (7 + 8) + 2 * 4 * 125), kNa},
      {"aten::_cudnn_rnn_backward, sizes = [[5, 2, 3], [12, 3], [12, 4], [12], [12], [], [108], [1, 2, 4], "
       "[], [5, 2, 4], [5, 2, 4], [], [], [], [], [], [], [], [], [], [], [], [], [500], []]",
       10 * 4 * 12 * 7, kNa},
  });
}

TEST(OpLabelCost, NormsAndLosses) {
  Check({
      {"aten::native_layer_norm_backward, sizes = [[4, 8], [4, 8], [], [4, 1], [4, 1], [8], [8], []]", 416,
       3 * 128 + 3 * 32 + 32},
      {"aten::_fused_rms_norm_backward, sizes = [[4, 8], [4, 8], [], [4, 1], [8], []]", 288,
       3 * 128 + 2 * 32 + 16},
      {"aten::native_batch_norm_backward, sizes = [[2, 3, 4], [2, 3, 4], [3], [3], [3], [3], [3], [], [], "
       "[]]",
       312, 3 * 96 + 3 * 12 + 24},
      {"aten::cudnn_batch_norm, sizes = [[2, 3, 4], [3], [3], [3], [3], [], [], []]", 192,
       2 * 96 + 4 * 12 + 24},
      // Gradients of one number have no sizes.
      {"aten::nll_loss_backward, sizes = [[], [4, 5], [4], [], [], [], []]", 4, 32 + 80 + 4},
      {"aten::mse_loss_backward, sizes = [[], [10], [10], []]", 20, 124},
      // The mean is an op of its own.
      {"aten::mse_loss, sizes = [[10], [10], []]", 20, 120},
  });
}

TEST(OpLabelCost, ListsOfTensorsHaveNoBrackets) {
  const std::string list = "[10], [4, 5], ";
  const std::string rest = "[], [], [], [], [], [], [], [], [], [], [], []]";
  Check({
      {"aten::_fused_adamw_, sizes = [" + list + list + list + list + rest, 34 * 30, 7 * 120},
      {"aten::_fused_adamw_, sizes = [" + list + list + list + list + list + rest, 35 * 30, 9 * 120},
      {"aten::_fused_adam_, sizes = [" + list + list + list + list + rest, kNa, 7 * 120},
      {"aten::_fused_sgd_, sizes = [" + list + list + rest, kNa, 3 * 120},
      {"aten::_fused_sgd_, sizes = [" + list + list + list + rest, kNa, 5 * 120},
      // Six of one shape: three parameters, or two with their momentum.
      {"aten::_fused_sgd_, sizes = [[7], [7], [7], [7], [7], [7], " + rest, kNa, kNa},
      {"aten::_foreach_addcdiv_, sizes = [" + list + list + list + "[]]", 90, 4 * 120},
      {"aten::_foreach_lerp_, sizes = [" + list + list + "[]]", 90, 3 * 120},
      {"aten::_foreach_sqrt, sizes = [[10], [4, 5]]", 600, 240},
      {"aten::_foreach_norm, sizes = [[10], [4, 5], [], []]", 2 * 30 + 2 * 20, 128},
      {"aten::_foreach_copy_, sizes = [" + list + list + "[]]", 0, 240},
      // With a number, or with as many tensors?
      {"aten::_foreach_add_, sizes = [[10], [10], []]", kNa, kNa},
      {"aten::_foreach_add_, sizes = [[[10], [4, 5]], [[10], [4, 5]], []]", 30, 3 * 120},
      {"aten::cat, sizes = [[2, 3], [4, 3], []]", 0, 144},
  });
}

TEST(OpLabelCost, WhatSizesDoNotTellIsNotGuessed) {
  Check({
      {"aten::sum, sizes = [[2, 5], [], [], []]", 10, kNa},
      {"aten::mean, sizes = [[2, 5], [], [], []]", kNa, kNa},
      {"aten::index, sizes = [[10, 4], [3]]", 0, kNa},
      {"aten::index_put_, sizes = [[10, 4], [3], [3], []]", kNa, kNa},
      {"aten::max_pool2d_with_indices, sizes = [[1, 1, 4, 4], [], [], [], [], []]", kNa, kNa},
      {"aten::frobnicate, sizes = [[10]]", kNa, kNa},
      // Into which type.
      {"aten::_to_copy, seq = 3, sizes = [[2048], [], [], [], [], [], []]", 0, kNa},
      {"aten::half, sizes = [[2048]]", 0, 12288},
      // A condition is bool.
      {"aten::where, sizes = [[6], [6], [6]]", 6, 6 + 72},
      {"aten::masked_fill_, sizes = [[6], [6], []]", 6, 6 + 48},
  });
}

TEST(OpLabelCost, ConversionsAreToldByTheNumberOrTheNameOfTheType) {
  const std::string label = R"({"op":"aten::_to_copy","args":[)"
                            R"({"name":"self","dtype":"float32","shape":[2048]},{"name":"dtype","value":)";
  Check({{label + "5}]}", 0, 12288},
         {label + R"("torch.bfloat16"}]})", 0, 12288},
         {label + "7}]}", 0, 24576},
         {label + "null}]}", 0, 16384}});
}

// {"name":NAME,"dtype":"float32","shape":[SHAPE]}
std::string T(const std::string& name, const std::string& shape, const std::string& dtype = "float32") {
  return R"({"name":")" + name + R"(","dtype":")" + dtype + R"(","shape":[)" + shape + "]}";
}

std::string Json(const std::string& op, const std::vector<std::string>& args,
                 const std::string& attributes = "") {
  std::string text = R"({"op":")" + op + R"(","args":[)";
  for (const std::string& arg : args) text += (text.back() == '[' ? "" : ",") + arg;
  return text + "]" + (attributes.empty() ? "" : R"(,"attributes":{)" + attributes + "}") +
         R"(,"direction":"forward","seq":1})";
}

TEST(OpLabelCost, OpsOfLibTorchWithTheNamesOfTheirSchemas) {
  const std::string conv = R"({"name":"stride","value":[2,2]},{"name":"padding","value":[1,1]},)"
                           R"({"name":"dilation","value":[1,1]},{"name":"transposed","value":false})";
  const std::string q = "2,16,8,64";
  Check({
      {Json("aten::addmm", {T("self", "4"), T("mat1", "2,3"), T("mat2", "3,4")}), 56, 120},
      {Json("aten::cudnn_convolution", {T("self", "1,2,5,5"), T("weight", "4,2,3,3"), conv}), 1296, 632},
      {Json("aten::convolution_backward",
            {T("grad_output", "1,4,3,3"), T("input", "1,2,5,5"), T("weight", "4,2,3,3"), conv}),
       2592, 1264},
      {Json("aten::mean", {T("self", "2,5"), R"({"name":"dim","value":[-1]})"}), 12, 48},
      {Json("aten::max_pool2d_with_indices", {T("self", "1,1,4,4"), R"({"name":"kernel_size","value":[2,2]})",
                                              R"({"name":"stride","value":[]})"}),
       16, 112},
      {Json("aten::nll_loss_forward",
            {T("self", "4,5"), T("target", "4", "int64"), R"({"name":"reduction","value":0})"}),
       4, 16 + 32 + 16},
      {Json("aten::nll_loss_backward", {T("grad_output", ""), T("self", "4,5"), T("target", "4", "int64"),
                                        R"({"name":"reduction","value":1})", T("total_weight", "")}),
       4, 32 + 80 + 4},
      {Json("aten::_fused_adamw_", {T("self", "10"), T("self", "4,5"), T("grads", "10"), T("grads", "4,5"),
                                    T("exp_avgs", "10"), T("exp_avgs", "4,5"), T("exp_avg_sqs", "10"),
                                    T("exp_avg_sqs", "4,5"), T("state_steps", ""), T("state_steps", "")}),
       34 * 30, 7 * 120},
      {Json("aten::_foreach_add_", {T("self", "10"), T("self", "4,5"), R"({"name":"scalar","value":1})"}), 30,
       240},
      {Json("aten::_flash_attention_forward",
            {T("query", q), T("key", q), T("value", q), R"({"name":"is_causal","value":true})"}),
       2 * 16 * 128 * 128, 4 * 4 * 16384 + 4 * 256},
      {Json("aten::_efficient_attention_forward",
            {T("query", q), T("key", q), T("value", q), R"({"name":"custom_mask_type","value":1})"}),
       2 * 16 * 128 * 128, 4 * 4 * 16384 + 4 * 256},
  });
}

TEST(OpLabelCost, TensorsMayBeCalledAnything) {
  const std::string q = "2,8,16,64";
  Check({
      // A fourth tensor of attention is a mask or the result.
      {Json("scaled_dot_product_attention", {T("q", q), T("k", q), T("v", q), T("mask", "16,16")}),
       2 * 16 * 256 * 128, 4 * 4 * 16384 + 4 * 256 + 4 * 256},
      {Json("scaled_dot_product_attention", {T("q", q), T("k", q), T("v", q), T("out", q)}),
       2 * 16 * 256 * 128, 4 * 4 * 16384 + 4 * 256},
      {Json("adamw", {T("p", "10"), T("g", "10"), T("m", "10"), T("v", "10"), T("step", "1")}), 340, 280},
      {Json("linear", {T("x", "2,3"), T("w", "4,3"), T("b", "4")}), 56, 120},
      // A third tensor that is no bias.
      {Json("linear", {T("x", "2,3"), T("w", "4,3"), T("y", "2,4")}), 48, 104},
      {Json("conv2d", {T("x", "1,2,5,5"), T("w", "4,2,3,3")}, R"("stride":[2,2],"padding":[1,1])"), 1296,
       632},
      {Json("conv2d", {T("weight", "4,2,3,3"), T("input", "1,2,5,5")}, R"("stride":2,"padding":1)"), 1296,
       632},
      {Json("sum", {T("x", "2,5")}, R"("dim":1)"), 10, 48},
      {Json("mse_loss", {T("x", "10"), T("y", "10")}), 30, 84},
      {Json("embedding", {T("table", "100,16"), T("ids", "5", "int64")}), 0, 40 + 640},
  });
}

TEST(OpLabelCost, Collectives) {
  const auto message = [](const std::string& text) {
    return CostOf(ParseLabel(SplitLabel(text)).description, OpPass::kForward, DType::kFloat32).message_bytes;
  };
  EXPECT_EQ(message("c10d::allreduce_, sizes = [[1000], [], [], [], [], []]"), 4000);
  EXPECT_EQ(message("c10d::_allgather_base_, sizes = [[4000], [1000], [], [], []]"), 16000);
  EXPECT_EQ(message("c10d::_reduce_scatter_base_, sizes = [[1000], [4000], [], [], [], []]"), 16000);
  EXPECT_EQ(message("nccl:_reduce_scatter_base, sizes = [[4000]]"), 16000);
  EXPECT_EQ(message("nccl:send 0->1, sizes = [[1000]]"), 4000);
  // A rank's part alone; and NCCL's gather is none of a tensor's elements.
  for (const char* text : {"c10d::reduce_scatter_, sizes = [[1000], [], [], [], [], []]",
                           "nccl:_all_gather_base, sizes = [[1000]]", "nccl:gather, sizes = [[1000]]"}) {
    EXPECT_EQ(message(text), std::nullopt) << text;
  }
  Check({{"nccl:gather, sizes = [[1000]]", kNa, kNa}, {"nccl:scatter, sizes = [[1000]]", kNa, kNa}});
}

}  // namespace
}  // namespace ott::kernels
