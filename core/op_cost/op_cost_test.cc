#include "ott/core/op_cost/op_cost.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/op_cost/op_cost_for_test.h"
#include "gtest/gtest.h"

namespace ott::op_cost_for_test {
namespace {

TEST(OpCost, ProductsOfMatrices) {
  Check({
      {"mm", {T({2, 3}), T({3, 4})}, kForward, 48, 4 * (6 + 12 + 8)},
      {"addmm", {T({4}), T({2, 3}), T({3, 4})}, kForward, 48 + 8, 104 + 16},
      {"bmm", {T({5, 2, 3}, kF16), T({5, 3, 4}, kF16)}, kForward, 240, 2 * (30 + 60 + 40)},
      {"baddbmm", {T({5, 2, 4}, kF16), T({5, 2, 3}, kF16), T({5, 3, 4}, kF16)}, kForward, 280, 260 + 80},
      // Batches are broadcast; an operand that is repeated is read once.
      {"matmul", {T({5, 2, 3}, kBF16), T({3, 4}, kBF16)}, kForward, 240, 2 * (30 + 12 + 40)},
      {"matmul", {T({2, 1, 2, 3}), T({5, 3, 4})}, kForward, 480, 4 * (12 + 60 + 80)},
      {"__matmul__", {T({3}), T({3})}, kForward, 6, 4 * 7},
      {"__rmatmul__", {T({3, 4}), T({2, 3})}, kForward, 48, 4 * (6 + 12 + 8)},
      {"addbmm", {T({2, 4}), T({5, 2, 3}), T({5, 3, 4})}, kForward, 240 + 8, 4 * (30 + 60 + 8 + 8)},
      {"mv", {T({2, 3}), T({3})}, kForward, 12, 4 * (6 + 3 + 2)},
      {"linear", {T({32, 128}, kF16), T({64, 128}, kF16)}, kForward, 524288, 2 * (4096 + 8192 + 2048)},
      {"linear", {T({32, 128}, kF16), T({64, 128}, kF16), T({64}, kF16)}, kForward, 526336, 28672 + 128},
      {"linear",
       {T({32, 128}, kF16), T({64, 128}, kF16), T({64}, kF16)},
       OpPass::kInputGradient,
       524288,
       28672},
      {"linear",
       {T({32, 128}, kF16), T({64, 128}, kF16), T({64}, kF16)},
       OpPass::kWeightGradient,
       524288,
       28672},
      {"linear",
       {T({32, 128}, kF16), T({64, 128}, kF16), T({64}, kF16)},
       kBackward,
       2 * 524288 + 2048,
       57344 + 128},
      {"linear", {T({4, 8, 128}), T({64, 128})}, kForward, 524288, 4 * (4096 + 8192 + 2048)},
      // Shapes that do not go together.
      {"linear", {T({5, 3}), T({3})}, kForward, 30, 4 * (15 + 3 + 5)},
      {"mm", {T({2, 3}), T({4, 4})}, kForward, kNa, kNa},
      {"mm", {T({2, 3})}, kForward, kNa, kNa},
  });
}

TEST(OpCost, ProductsOfOtherTypes) {
  const DType f8 = DType::kFloat8E4M3;
  Check({
      {"_scaled_mm",
       {T({16, 32}, f8), T({32, 16}, f8), Text("out_dtype", "torch.bfloat16")},
       kForward,
       16384,
       1536},
      {"_scaled_mm", {T({16, 32}, f8), T({32, 16}, f8)}, kForward, 16384, kNa},
      {"_int_mm",
       {T({16, 32}, DType::kInt8), T({32, 16}, DType::kInt8)},
       kForward,
       16384,
       512 + 512 + 4 * 256},
      {"mm", {T({2, 3}, DType::kComplex64), T({3, 4}, DType::kComplex64)}, kForward, 8 * 24, 8 * 26},
      {"addmm",
       {T({4}, DType::kComplex64), T({2, 3}, DType::kComplex64), T({3, 4}, DType::kComplex64)},
       kForward,
       8 * 24 + 2 * 8,
       8 * 26 + 8 * 4},
      {"mm", {T({2, 3}, DType::kFloat64), T({3, 4}, DType::kFloat64)}, kForward, 48, 8 * 26},
  });
}

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

TEST(OpCost, Attention) {
  const auto qkv = [](Shape q, Shape kv, double causal) {
    return std::vector<OpArgument>{T(q, kF16), T(kv, kF16), T(kv, kF16), N("is_causal", {causal})};
  };
  const std::string name = "scaled_dot_product_attention";
  Check({
      {name, qkv({2, 8, 16, 64}, {2, 8, 16, 64}, 0), kForward, 2 * 16 * 256 * 128, 4 * 32768 + 1024},
      {name, qkv({2, 8, 16, 64}, {2, 8, 16, 64}, 1), kForward, 2 * 16 * 128 * 128, 4 * 32768 + 1024},
      {name, qkv({2, 8, 16, 64}, {2, 8, 16, 64}, 0), kBackward, 2 * 16 * 256 * 320, 8 * 32768 + 1024},
      // Grouped queries: four heads share keys and values.
      {name, qkv({2, 8, 16, 64}, {2, 2, 16, 64}, 0), kForward, 1048576, 2 * 32768 + 2 * 8192 + 1024},
      {name, qkv({1, 1, 4, 1}, {1, 1, 2, 1}, 1), kForward, 2 * 6 * 2, 2 * (4 + 2 + 2 + 4) + 16},
      {name, qkv({1, 1, 2, 1}, {1, 1, 4, 1}, 1), kForward, 2 * 2 * 2, 2 * (2 + 4 + 4 + 2) + 8},
      {"_scaled_dot_product_flash_attention_backward",
       {T({2, 8, 16, 64}, kF16), T({2, 8, 16, 64}, kF16), T({2, 8, 16, 64}, kF16), T({2, 8, 16, 64}, kF16),
        N("is_causal", {0})},
       kForward,
       2621440,
       263168},
      // The flash-attn library's: heads after the sequence; dropout, scale and causal by position.
      {"_flash_attn_forward",
       {T({2, 16, 8, 64}, kF16), T({2, 16, 8, 64}, kF16), T({2, 16, 8, 64}, kF16), N("", {0}), N("", {0.125}),
        N("", {1})},
       kForward,
       2 * 16 * 128 * 128,
       4 * 32768 + 1024},
      // There the last query goes with the last of more keys: 2 x 2 before, and half of 2 x 2.
      {"flash_attn_forward",
       {T({1, 2, 1, 1}, kF16), T({1, 4, 1, 1}, kF16), T({1, 4, 1, 1}, kF16), N("", {0}), N("", {1}),
        N("", {1})},
       kForward,
       2 * 6 * 2,
       2 * (2 + 4 + 4 + 2) + 8},
      {"FlashAttnFunc",
       {T({1, 1, 1, 1}, kF16), T({1, 4, 1, 1}, kF16), T({1, 4, 1, 1}, kF16), N("", {0}), N("", {1}),
        N("", {1})},
       kForward,
       2 * 4 * 2,
       2 * (1 + 4 + 4 + 1) + 4},
  });
  // Two sequences of 8 one after the other; of which nothing is known where the longest has 12.
  const auto packed = [](int64_t sums, double longest) {
    return std::vector<OpArgument>{
        T({16, 4, 32}, kF16), T({16, 4, 32}, kF16), T({16, 4, 32}, kF16), T({sums}),  T({sums}),
        N("", {longest}),     N("", {longest}),     N("", {0}),           N("", {1}), N("", {0})};
  };
  Check({
      {"_flash_attn_varlen_forward", packed(3, 8), kForward, 2 * 2 * 4 * 64 * 64, 4 * 2 * 2048 + 4 * 64},
      {"_flash_attn_varlen_forward", packed(2, 16), kForward, 2 * 4 * 256 * 64, 4 * 2 * 2048 + 4 * 64},
      {"_flash_attn_varlen_forward", packed(3, 12), kForward, kNa, kNa},
  });
  OpDescription sizes = Op("_scaled_dot_product_flash_attention", qkv({1, 1, 2, 1}, {1, 1, 2, 1}, 0));
  sizes.arguments.pop_back();
  sizes.tensors_only = true;
  EXPECT_FALSE(CostOf(sizes, kForward, std::nullopt).flops.has_value());
  EXPECT_TRUE(CostOf(sizes, kForward, std::nullopt).bytes.has_value());
}

TEST(OpCost, RecurrentNetworks) {
  const std::vector<OpArgument> sequence = {T({5, 2, 3}), T({1, 2, 4})};
  Check({
      {"lstm_cell", {T({2, 3}), T({2, 4})}, kForward, 2 * (224 + 4 * 125), 4 * (6 + 144 + 32)},
      {"lstm_cell", {T({2, 3}), T({2, 4})}, kBackward, 2 * 2 * 224, 4 * (6 + 144 + 32 + 6 + 144)},
      {"gru", sequence, kForward, 10 * (168 + 4 * 80), 4 * (30 + 108 + 16 + 40)},
      {"rnn_tanh", sequence, kForward, 10 * (56 + 4 * 23), 4 * (30 + 36 + 16 + 40)},
      {"rnn_relu", sequence, kForward, 10 * (56 + 4 * 4), 4 * (30 + 36 + 16 + 40)},
      // The second layer reads what both directions of the first gave: I = 8.
      {"lstm",
       {T({5, 2, 3}), T({4, 2, 4}), N("num_layers", {2}), N("bidirectional", {1})},
       kForward,
       10 * (2 * 32 * (3 + 4) + 2 * 32 * (8 + 4) + 16 * 125),
       4 * (30 + 2 * 16 * 9 + 2 * 16 * 14 + 4 * 32 + 80)},
      {"lstm", {T({5, 2, 3})}, kForward, kNa, kNa},
      // A weight is no state.
      {"lstm", {T({5, 2, 3}), T({16, 3}, kF32, "w"), T({16, 4}, kF32, "u")}, kForward, kNa, kNa},
  });
}

TEST(OpCost, CellsOfPyProfAreNamedByTheirModule) {
  OpDescription cell = Op("forward", {T({2, 3}), T({2, 4})});
  EXPECT_FALSE(CostOf(cell, kForward, std::nullopt).flops.has_value());
  cell.module = "LSTMCell";
  EXPECT_EQ(CostOf(cell, kForward, std::nullopt).flops, 2 * (224 + 4 * 125));
}

TEST(OpCost, PointwiseOps) {
  const DType c64 = DType::kComplex64;
  Check({
      // These figures are as published for PyProf.
      {"relu", {T({51380224}, kF16)}, kForward, 51380224, 205520896},
      {"relu", {T({51380224}, kF16)}, kBackward, 51380224, 308281344},
      {"add", {T({2, 3}), T({3})}, kForward, 6, 4 * (6 + 3 + 6)},
      {"add_", {T({2, 3}), N("", {1})}, kForward, 6, 48},
      {"eq", {T({2, 3}), T({3})}, kForward, 6, 36 + 6},
      {"exp", {T({10})}, kForward, 200, 80},
      {"sigmoid", {T({10})}, kForward, 230, 80},
      {"gelu", {T({10}, kBF16)}, kForward, 240, 40},
      {"gelu", {T({10}, kBF16), Text("approximate", "tanh")}, kForward, 280, 40},
      {"gelu", {T({10}, kBF16)}, kBackward, 490, 60},
      {"silu", {T({10})}, kForward, 240, 80},
      {"tanh_backward", {T({10}), T({10})}, kForward, 30, 120},
      {"mul", {T({10}), T({10})}, kBackward, 20, 4 * (10 + 20 + 20)},
      {"mul", {T({10}), N("", {2})}, kBackward, 10, 80},
      {"add", {T({10}, c64), T({10}, c64)}, kForward, 20, 240},
      {"mul", {T({10}, c64), T({10}, c64)}, kForward, 60, 240},
      {"exp", {T({10}, c64)}, kForward, kNa, 160},
      {"where", {T({6}, DType::kBool), T({6}), T({6})}, kForward, 6, 6 + 72},
      {"addcmul", {T({6}), T({6}), T({6})}, kForward, 18, 96},
      {"add", {T({2, 3}), T({4})}, kForward, kNa, kNa},
      {"add", {}, kForward, kNa, kNa},
      {"mul", {T({0, 3}), T({3})}, kForward, 0, 12},
  });
}

TEST(OpCost, ReductionsAndSoftmax) {
  Check({
      {"sum", {T({10})}, kForward, 10, 44},
      {"sum", {T({2, 5}), N("dim", {1})}, kForward, 10, 48},
      {"sum", {T({2, 5}), N("dim", {-1, 0})}, kForward, 10, 44},
      {"sum", {T({2, 5}), N("dim", {7})}, kForward, kNa, kNa},
      {"mean", {T({10})}, kForward, 11, 44},
      {"argmax", {T({10})}, kForward, 10, 48},
      {"norm", {T({10})}, kForward, 40, 44},
      {"var", {T({10})}, kForward, 41, 44},
      {"std", {T({10})}, kForward, 61, 44},
      {"cumsum", {T({10}), N("dim", {0})}, kForward, 10, 80},
      {"any", {T({10}, DType::kBool)}, kForward, 10, 11},
      {"max", {T({10}), T({10})}, kForward, 10, 120},
      {"_softmax", {T({2, 5})}, kForward, 240, 80},
      {"softmax", {T({2, 5})}, kBackward, 40, 120},
      {"_softmax_backward_data", {T({2, 5}), T({2, 5})}, kForward, 40, 120},
      {"log_softmax", {T({2, 5})}, kForward, 240, 80},
      {"_log_softmax_backward_data", {T({2, 5}), T({2, 5})}, kForward, 230, 120},
  });
}

TEST(OpCost, Norms) {
  Check({
      {"layer_norm",
       {T({4, 8}), N("normalized_shape", {8}), T({8}), T({8})},
       kForward,
       256,
       2 * 128 + 64 + 32},
      {"layer_norm", {T({4, 8}), N("normalized_shape", {8})}, kForward, 192, 2 * 128 + 32},
      {"native_layer_norm",
       {T({4, 8}), N("normalized_shape", {8}), T({8}), T({8})},
       kBackward,
       416,
       384 + 96 + 32},
      {"rms_norm", {T({4, 8}), N("normalized_shape", {8}), T({8})}, kForward, 128, 256 + 32 + 16},
      {"rms_norm", {T({4, 8}), N("normalized_shape", {8}), T({8})}, kBackward, 288, 384 + 64 + 16},
      {"batch_norm", {T({2, 3, 4}), T({3}), T({3})}, kForward, 192, 192 + 24 + 24},
      {"batch_norm", {T({2, 3, 4}), T({3}), T({3}), N("training", {0})}, kForward, 96, 192 + 24},
      {"group_norm", {T({2, 4, 3}), N("num_groups", {2}), T({4}), T({4})}, kForward, 192, 192 + 32 + 32},
      {"instance_norm", {T({2, 3, 4})}, kForward, 144, 192 + 48},
  });
}

TEST(OpCost, DropoutEmbeddingAndPooling) {
  const std::vector<OpArgument> rows = {T({100, 16}), T({5}, kI64)};
  Check({
      {"dropout", {T({10}, kF16)}, kForward, 20, 50},
      {"dropout", {T({10}, kF16)}, kBackward, 10, 50},
      {"embedding", rows, kForward, 0, 40 + 640},
      {"embedding", {rows[1], rows[0]}, kForward, 0, 40 + 640},
      {"embedding", rows, kBackward, 80, 40 + 320 + 6400},
      {"embedding_dense_backward", {T({5, 16}), T({5}, kI64), N("num_weights", {100})}, kForward, 80, 6760},
      {"max_pool2d", {T({1, 1, 4, 4}), N("kernel_size", {2})}, kForward, 16, 80},
      {"max_pool2d", {T({1, 1, 4, 4}), N("kernel_size", {2})}, kBackward, 4, 80},
      {"max_pool2d_with_indices", {T({1, 1, 4, 4}), N("kernel_size", {2})}, kForward, 16, 112},
      {"max_pool2d", {T({1, 1, 5, 5}), N("kernel_size", {2}), N("ceil_mode", {1})}, kForward, 36, 100 + 36},
      {"avg_pool2d", {T({1, 1, 4, 4}), N("kernel_size", {2})}, kForward, 20, 80},
      {"avg_pool1d", {T({1, 1, 5}), N("kernel_size", {3}), N("stride", {2})}, kForward, 8, 28},
      {"adaptive_avg_pool2d", {T({1, 1, 4, 4}), N("output_size", {1})}, kForward, 17, 68},
  });
}

TEST(OpCost, LossesAndOptimizers) {
  const std::vector<OpArgument> classes = {T({4, 5}), T({4}, kI64)};
  const std::vector<OpArgument> adam = {T({10}), T({10}), T({10}), T({10})};
  Check({
      {"mse_loss", {T({10}), T({10})}, kForward, 30, 84},
      {"mse_loss", {T({10}), T({10}), Text("reduction", "none")}, kForward, 20, 120},
      {"l1_loss", {T({10}), T({10})}, kBackward, 20, 40 + 40 + 40 + 4},
      {"smooth_l1_loss", {T({10}), T({10})}, kForward, 60, 84},
      {"binary_cross_entropy", {T({10}), T({10})}, kForward, 450, 84},
      {"cross_entropy", classes, kForward, 480 + 4, 80 + 32 + 4},
      {"cross_entropy", classes, kBackward, 440 + 4, 80 + 32 + 80 + 4},
      {"nll_loss", classes, kForward, 4, 16 + 32 + 4},
      {"nll_loss", classes, kBackward, 4, 32 + 80 + 4},
      {"sgd", {T({10}), T({10})}, kForward, 20, 80 + 40},
      {"sgd", {T({10}), T({10}), N("momentum", {0.9})}, kForward, 40, 80 + 40 + 80},
      {"sgd", {T({10}), N("weight_decay", {0.1})}, kForward, 40, 80 + 40},
      {"adam", adam, kForward, 330, 280},
      {"adam", {T({10})}, kForward, 330, 280},
      {"_fused_adamw_", adam, kForward, 340, 280},
  });
}

TEST(OpCost, CopiesAndIndexing) {
  Check({
      {"clone", {T({10})}, kForward, 0, 80},
      {"copy_", {T({10}, kF16), T({10})}, kForward, 0, 60},
      {"to", {T({10}), Text("dtype", "float16")}, kForward, 0, 60},
      {"zero_", {T({10})}, kForward, 0, 40},
      {"cat", {T({2, 3}), T({4, 3})}, kForward, 0, 144},
      {"gather", {T({10, 10}), N("dim", {0}), T({3, 3}, kI64)}, kForward, 0, 72 + 72},
      {"index_select", {T({10, 4}), N("dim", {0}), T({3}, kI64)}, kForward, 0, 24 + 96},
      {"index", {T({10, 4}), T({3}, kI64)}, kForward, 0, 24 + 96},
      {"index", {T({10, 4}), T({10}, DType::kBool)}, kForward, 0, kNa},
      // Two indices say where three values go.
      {"index_put_",
       {T({10, 4}), T({3}, kI64), T({3}, kI64), T({3}), N("accumulate", {1})},
       kForward,
       3,
       48 + 12 + 24},
      {"scatter_add_", {T({10, 4}), N("dim", {0}), T({3, 4}, kI64), T({3, 4})}, kForward, 12, 96 + 48 + 96},
      {"scatter_", {T({10, 4}), N("dim", {0}), T({3, 4}, kI64), T({3, 4})}, kForward, 0, 96 + 48 + 48},
      {"scatter", {T({10, 4}), N("dim", {0}), T({3, 4}, kI64), T({3, 4})}, kForward, 0, 96 + 48 + 48 + 320},
  });
}

TEST(OpCost, Collectives) {
  struct CollectiveCase {
    std::string op;
    double flops, message, bus;
  };
  for (const CollectiveCase& c : std::vector<CollectiveCase>{{"all_reduce", 750, 4000, 6000},
                                                             {"ncclAllReduce", 750, 4000, 6000},
                                                             {"reduce_scatter", 750, 4000, 3000},
                                                             {"all_gather", 0, 16000, 12000},
                                                             {"all_to_all", 0, 4000, 3000},
                                                             {"broadcast", 0, 4000, 4000}}) {
    const OpCost cost = CostOf(Op(c.op, {T({1000}), N("world_size", {4})}), kForward, std::nullopt);
    EXPECT_EQ(cost.flops, c.flops) << c.op;
    EXPECT_EQ(cost.message_bytes, c.message) << c.op;
    EXPECT_EQ(cost.bus_bytes, c.bus) << c.op;
    EXPECT_EQ(cost.bytes, c.bus) << c.op;
  }
  EXPECT_EQ(CostOf(Op("all_reduce", {T({1000}), N("world_size", {1})}), kForward, std::nullopt).bus_bytes, 0);
  const OpCost alone = CostOf(Op("all_reduce", {T({1000})}), kForward, std::nullopt);
  EXPECT_EQ(alone.message_bytes, 4000);
  EXPECT_FALSE(alone.bus_bytes.has_value());
}

TEST(OpCost, AnUnknownOpIsNotFree) {
  const OpCost cost = CostOf(Op("frobnicate", {T({10}), T({3, 4}, kI64)}), kForward, std::nullopt);
  EXPECT_FALSE(cost.flops.has_value());
  EXPECT_FALSE(cost.bytes.has_value());
  EXPECT_EQ(cost.params, "[10]float32;[3,4]int64");
}

TEST(OpCost, BytesNeedAType) {
  const OpDescription op = Op("mm", {T({2, 3}, std::nullopt), T({3, 4}, std::nullopt)});
  EXPECT_EQ(CostOf(op, kForward, std::nullopt).flops, 48);
  EXPECT_FALSE(CostOf(op, kForward, std::nullopt).bytes.has_value());
  EXPECT_EQ(CostOf(op, kForward, kBF16).bytes, 52);
}

TEST(OpCost, ParametersOfAProductAreColumnMajor) {
  EXPECT_EQ(CostOf(Op("mm", {T({2, 3}), T({3, 4})}), kForward, std::nullopt).params, "M=4,N=2,K=3,float32");
  EXPECT_EQ(CostOf(Op("mm", {T({2, 3}), T({3, 4})}), kForward, std::nullopt).matrix_sizes,
            (std::vector<int64_t>{4, 2, 3}));
  EXPECT_EQ(CostOf(Op("conv2d", {T({1, 2, 5, 5}), T({4, 2, 3, 3})}), kForward, std::nullopt).params,
            "N=1,C=2,in=5x5,K=4,out=3x3,kernel=3x3,g=1,float32");
}

TEST(OpCost, NoShapeOfAnyOpEndsTheProgram) {
  const std::vector<Shape> shapes = {
      {}, {0}, {1}, {0, 0}, {2, 3}, {3, 4, 5}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1}};
  for (const char* op : {"mm",
                         "linear",
                         "conv2d",
                         "conv_transpose3d",
                         "convolution_backward",
                         "lstm",
                         "gru_cell",
                         "scaled_dot_product_attention",
                         "layer_norm",
                         "batch_norm",
                         "group_norm",
                         "max_pool2d",
                         "avg_pool3d",
                         "_pool",
                         "embedding",
                         "cross_entropy",
                         "nll_loss_backward",
                         "adam",
                         "index",
                         "index_select",
                         "scatter",
                         "sum",
                         "all_gather",
                         "cat",
                         "where",
                         "",
                         "_",
                         "__",
                         "_backward",
                         "softmax_backward_data"}) {
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
