// Reads what LibTorch's torch::save writes.

#include "ott/core/checkpoint/checkpoint.h"

#include <torch/torch.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace ott {
namespace {

struct Training {
  Training() : adam(net->parameters(), torch::optim::AdamOptions(0.01)) {
    net->forward(torch::ones({2, 4})).square().sum().backward();
    adam.step();
  }

  torch::nn::Sequential net{torch::nn::Linear(4, 3), torch::nn::Linear(3, 2)};
  torch::optim::Adam adam;
};

void ExpectSame(const Value* value, const torch::Tensor& tensor) {
  ASSERT_NE(value, nullptr);
  ASSERT_TRUE(value->is_tensor());
  const TensorView& view = value->tensor().view;
  ASSERT_EQ(view.num_bytes(), static_cast<int64_t>(tensor.nbytes()));
  EXPECT_EQ(std::memcmp(view.data(), tensor.contiguous().data_ptr(), tensor.nbytes()), 0);
}

TEST(LibTorchCheckpoint, ParametersAndMomentsAreReadByName) {
  Training training;
  const std::string model = testing::TempDir() + "/model.pt";
  const std::string optimizer = testing::TempDir() + "/optimizer.pt";
  torch::save(training.net, model);
  torch::save(training.adam, optimizer);
  const Checkpoint weights = ReadCheckpoint(model).value();
  EXPECT_EQ(weights.format, "TorchScript");
  for (const auto& parameter : training.net->named_parameters()) {
    ExpectSame(weights.state.map().Find(parameter.key()), parameter.value());
  }
  const Checkpoint state = ReadCheckpoint(optimizer).value();
  int num_moments = 0;
  for (const auto& [name, value] : state.state.map()) {
    if (name.find("exp_avg") != name.npos) num_moments += value.is_tensor();
  }
  EXPECT_EQ(num_moments, 8);
}

}  // namespace
}  // namespace ott
