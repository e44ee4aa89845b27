#include "ott/integrations/torch/tensor.h"

#include <ATen/ATen.h>

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

struct Case {
  at::ScalarType type;
  DType dtype;
};

TEST(FromTorch, TakesEveryElementType) {
  constexpr Case kCases[] = {
      {at::kDouble, DType::kFloat64},
      {at::kFloat, DType::kFloat32},
      {at::kHalf, DType::kFloat16},
      {at::kBFloat16, DType::kBFloat16},
      {at::kChar, DType::kInt8},
      {at::kShort, DType::kInt16},
      {at::kInt, DType::kInt32},
      {at::kLong, DType::kInt64},
      {at::kByte, DType::kUInt8},
      {at::kBool, DType::kBool},
      {at::kComplexFloat, DType::kComplex64},
      {at::kComplexDouble, DType::kComplex128},
  };
  for (const auto& [type, dtype] : kCases) {
    const at::Tensor tensor = at::ones({2, 3}, type);
    const absl::StatusOr<Tensor> ours = FromTorch(tensor);
    ASSERT_TRUE(ours.ok()) << type << ": " << ours.status();
    EXPECT_EQ(ours->view.dtype(), dtype) << type;
    EXPECT_EQ(ours->view.num_bytes(), static_cast<int64_t>(tensor.nbytes())) << type;
  }
}

TEST(FromTorch, SharesTheMemoryAndKeepsItAlive) {
  at::Tensor tensor = at::arange(6, at::kFloat).reshape({2, 3});
  const void* const data = tensor.data_ptr();
  const Tensor ours = FromTorch(tensor).value();
  EXPECT_EQ(ours.view.data(), data);
  EXPECT_EQ(ours.view.shape(), Dims({2, 3}));
  EXPECT_TRUE(ours.view.is_contiguous());
  EXPECT_EQ(ours.view.device().kind, Device::Kind::kHost);
  tensor.fill_(7);
  tensor.reset();
  EXPECT_EQ(static_cast<const float*>(ours.view.data())[5], 7);
}

TEST(FromTorch, KeepsStrides) {
  const at::Tensor tensor = at::arange(12, at::kInt).reshape({3, 4});
  const Tensor transposed = FromTorch(tensor.t().slice(0, 1)).value();
  EXPECT_EQ(transposed.view.shape(), Dims({3, 3}));
  EXPECT_EQ(transposed.view.strides(), Dims({1, 4}));
  const Tensor clone = CloneToHost(transposed.view).value();
  const int expected[] = {1, 5, 9, 2, 6, 10, 3, 7, 11};
  EXPECT_EQ(std::memcmp(clone.view.data(), expected, sizeof(expected)), 0);
  EXPECT_EQ(FromTorch(tensor.select(0, 0).expand({2, 4}))->view.strides(), Dims({0, 1}));
}

TEST(FromTorch, TakesScalarsEmptyTensorsAndThoseThatRequireGradients) {
  EXPECT_EQ(FromTorch(at::scalar_tensor(1.5))->view.num_elements(), 1);
  EXPECT_EQ(FromTorch(at::empty({2, 0, 3}))->view.shape(), Dims({2, 0, 3}));
  EXPECT_TRUE(FromTorch(at::ones({2}).requires_grad_()).ok());
}

TEST(FromTorch, SaysHowToMakeATensorReadable) {
  const auto message = [](const at::Tensor& tensor) {
    const absl::Status status = FromTorch(tensor).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(message(at::Tensor()), HasSubstr("undefined"));
  EXPECT_THAT(message(at::ones({2, 2}).to_sparse()), HasSubstr(".to_dense()"));
  EXPECT_THAT(message(at::quantize_per_tensor(at::ones({2}), 0.1, 0, at::kQInt8)),
              HasSubstr(".dequantize()"));
  const at::Tensor complex = at::ones({2}, at::kComplexFloat);
  EXPECT_THAT(message(complex.conj()), HasSubstr(".resolve_conj()"));
  EXPECT_THAT(message(at::imag(complex.conj())), HasSubstr(".resolve_neg()"));
  EXPECT_THAT(message(at::empty({2}, at::kComplexHalf)), HasSubstr("ComplexHalf"));
  EXPECT_THAT(message(at::empty({2}, at::TensorOptions().device(at::kMeta))), HasSubstr("device meta"));
}

TEST(FromTorch, RemembersTheTensor) {
  const at::Tensor tensor = at::ones({2});
  const Tensor ours = FromTorch(tensor).value();
  ASSERT_NE(TorchTensorOf(ours), nullptr);
  EXPECT_TRUE(TorchTensorOf(ours)->is_same(tensor));
  const Tensor other = CloneToHost(ours.view).value();
  EXPECT_EQ(TorchTensorOf(other), nullptr);
}

}  // namespace
}  // namespace ott
