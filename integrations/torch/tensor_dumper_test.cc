#include "ott/integrations/torch/tensor_dumper.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <stdlib.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/integrations/torch/tensor.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TorchTensorDumperTest : public testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    TensorDumperOptions options;
    options.dir = dir_;
    ASSERT_TRUE(dumper_.Enable(options).ok());
    EnableTorchTensorDumping(dumper_);
  }

  void Add(std::string_view path, const at::Tensor& tensor, DumpFormat format = DumpFormat::kJson) {
    const absl::Status status = dumper_.AddTensorData(path, tensor, format);
    EXPECT_TRUE(status.ok()) << status;
  }

  void AddGrad(std::string_view path, const at::Tensor& tensor, DumpFormat format = DumpFormat::kJson) {
    const absl::Status status = dumper_.AddGradData(path, tensor, format);
    EXPECT_TRUE(status.ok()) << status;
  }

  absl::Status SetGradients(std::vector<at::Tensor> function_values) {
    return dumper_.SetGradients(TorchGradientProvider(std::move(function_values)));
  }

  const std::string dir_ = MakeTestDir();
  TensorDumper dumper_;
};

TEST_F(TorchTensorDumperTest, DumpsAreThoseOfPythonByteForByte) {
  at::manual_seed(7);
  const at::Tensor x = at::randn({5, 4});
  const at::Tensor w1 = at::randn({6, 4}).requires_grad_();
  const at::Tensor b1 = at::zeros({6}).requires_grad_();
  const at::Tensor w2 = at::randn({6}, at::kDouble).requires_grad_();
  const at::Tensor unused = at::ones({2}).requires_grad_();
  const at::Tensor hidden = at::tanh(at::linear(x, w1, b1));
  const at::Tensor output = at::matmul(hidden.to(at::kDouble), w2);
  const at::Tensor loss = output.pow(2).mean();

  Add("input", x);
  Add("input_t", x.t());
  Add("hidden", hidden, DumpFormat::kBinary);
  Add("hidden_t", hidden.t(), DumpFormat::kBinary);
  Add("output", output);
  Add("loss", loss);
  const at::Tensor x_double = x.to(at::kDouble);
  Add("dtypes.bfloat16", x.to(at::kBFloat16));
  Add("dtypes.bfloat16_bytes", x.to(at::kBFloat16), DumpFormat::kBinary);
  Add("dtypes.half", x.to(at::kHalf));
  Add("dtypes.half_bytes", x.to(at::kHalf), DumpFormat::kBinary);
  Add("dtypes.bool", x > 0);
  Add("dtypes.bool_bytes", x > 0, DumpFormat::kBinary);
  Add("dtypes.byte", (x * 10).abs().to(at::kByte));
  Add("dtypes.long", (x * 1e15).to(at::kLong));
  Add("dtypes.complex64", at::complex(x, x));
  Add("dtypes.complex128", at::complex(x_double, x_double));
  Add("dtypes.complex128_bytes", at::complex(x_double, x_double), DumpFormat::kBinary);

  AddGrad("input", x);
  AddGrad("weights.w1", w1);
  AddGrad("weights.b1", b1, DumpFormat::kBinary);
  AddGrad("weights.w2", w2);
  AddGrad("hidden", hidden);
  AddGrad("unused", unused);
  ASSERT_TRUE(SetGradients({loss}).ok());
  ASSERT_TRUE(dumper_.Dump().ok());

  const std::string python = MakeTestDir();
  const std::string command = "python3 integrations/torch/tensor_dumper_for_test.py '" + python + "'";
  ASSERT_EQ(system(command.c_str()), 0) << command << " (it needs python3-torch and python3-numpy)";
  const std::string ours = dir_ + "/0";
  std::set<std::string> files = NamesIn(ours);
  EXPECT_EQ(files.erase("manifest.json"), 1u);
  EXPECT_EQ(files, NamesIn(python));
  for (const std::string& file : files) {
    EXPECT_TRUE(ReadFile(ours + "/" + file).value() == ReadFile(python + "/" + file).value())
        << ours << "/" << file << " and " << python << "/" << file << " differ";
  }
}

TEST_F(TorchTensorDumperTest, GradientsLeaveTheTrainingAlone) {
  const at::Tensor w = at::ones({3}).requires_grad_();
  const at::Tensor loss = (w * w).sum();
  AddGrad("w", w);
  ASSERT_TRUE(SetGradients({loss}).ok());
  EXPECT_FALSE(w.grad().defined());
  loss.backward();
  EXPECT_TRUE(at::equal(w.grad(), at::full({3}, 2.0)));
  // The dumped gradient is a copy.
  w.grad().zero_();
  EXPECT_EQ(static_cast<const float*>(dumper_.grads()->map().Find("w")->tensor().view.data())[0], 2);
}

TEST_F(TorchTensorDumperTest, GradientsOfSeveralFunctionValuesAreSummed) {
  const at::Tensor w = at::ones({}).requires_grad_();
  AddGrad("w", w);
  ASSERT_TRUE(SetGradients({2 * w, 3 * w}).ok());
  EXPECT_EQ(*static_cast<const float*>(dumper_.grads()->map().Find("w")->tensor().view.data()), 5);
}

TEST_F(TorchTensorDumperTest, WithoutVariablesNothingIsDifferentiated) {
  const at::Tensor x = at::ones({});
  AddGrad("x", x);
  ASSERT_TRUE(SetGradients({x}).ok());
  EXPECT_EQ(dumper_.grads()->map().Find("x")->string_value(), "`.requires_grad == False`");
}

TEST_F(TorchTensorDumperTest, WhatAutogradThrowsIsAnError) {
  const at::Tensor w = at::ones({3}).requires_grad_();
  AddGrad("w", w);
  const absl::Status several = SetGradients({w * 2});
  EXPECT_EQ(several.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(several.message()), HasSubstr("scalar outputs"));

  const at::Tensor loss = w.pow(2).sum();
  loss.backward();
  AddGrad("w", w);
  EXPECT_THAT(std::string(SetGradients({loss}).message()), HasSubstr("a second time"));
}

TEST_F(TorchTensorDumperTest, VectorsOfTensorsAreLists) {
  const std::vector<at::Tensor> weights = {at::ones({2}).requires_grad_(), at::ones({3}).requires_grad_()};
  ASSERT_TRUE(dumper_.AddTensorData("weights", weights).ok());
  ASSERT_TRUE(dumper_.AddGradData("weights", weights).ok());
  ASSERT_TRUE(SetGradients({weights[0].sum() + weights[1].sum()}).ok());
  EXPECT_EQ(dumper_.tensors()->map().Find("weights")->list()[1].tensor().view.shape(), Dims({3}));
  EXPECT_EQ(dumper_.grads()->map().Find("weights")->list()[1].tensor().view.shape(), Dims({3}));
}

TEST_F(TorchTensorDumperTest, GradientsOfAnyFormAreDumpedAsNumbers) {
  const at::Tensor table = at::ones({4, 2}).requires_grad_();
  const at::Tensor rows = at::embedding(table, at::tensor({1, 1, 3}), /*padding_idx=*/-1,
                                        /*scale_grad_by_freq=*/false, /*sparse=*/true);
  const at::Tensor z = at::complex(at::ones({2}), at::full({2}, 2.0)).requires_grad_();
  AddGrad("table", table);
  AddGrad("z", z);
  const absl::Status status = SetGradients({rows.sum() + at::real(z.conj() * at::conj(z)).sum()});
  ASSERT_TRUE(status.ok()) << status;
  const TensorView& of_table = dumper_.grads()->map().Find("table")->tensor().view;
  const float* const values = static_cast<const float*>(of_table.data());
  EXPECT_EQ(of_table.shape(), Dims({4, 2}));
  EXPECT_EQ(std::vector<float>(values, values + 8), std::vector<float>({0, 0, 2, 2, 0, 0, 1, 1}));
  EXPECT_EQ(dumper_.grads()->map().Find("z")->tensor().view.dtype(), DType::kComplex64);
}

TEST_F(TorchTensorDumperTest, ErrorsNameTheTensor) {
  EXPECT_THAT(std::string(dumper_.AddTensorData("mask", at::ones({2, 2}).to_sparse()).message()),
              AllOf(HasSubstr("'mask'"), HasSubstr("to_dense")));
  const Tensor foreign = CloneToHost(FromTorch(at::ones({2}))->view).value();
  ASSERT_TRUE(dumper_.AddGradData("foreign", foreign).ok());
  EXPECT_THAT(std::string(SetGradients({at::ones({})}).message()),
              AllOf(HasSubstr("'foreign'"), HasSubstr("FromTorch")));
}

}  // namespace
}  // namespace ott
