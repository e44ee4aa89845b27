#include "ott/core/tensor/tensor.h"

#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Tensor, CloneIsContiguousAndKeepsItsMemoryAlive) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  const Tensor clone = CloneToHost(TensorView(data, DType::kFloat32, {3, 2}, {1, 3})).value();
  data[1] = 0;
  EXPECT_EQ(clone.view.shape(), Dims({3, 2}));
  EXPECT_TRUE(clone.view.is_contiguous());
  const float expected[6] = {1, 4, 2, 5, 3, 6};
  EXPECT_EQ(std::memcmp(clone.view.data(), expected, sizeof(expected)), 0);
  const Tensor none = CloneToHost(TensorView(nullptr, DType::kFloat64, {0, 4})).value();
  EXPECT_EQ(none.view.shape(), Dims({0, 4}));
}

TEST(Tensor, TooLargeForTheMachineIsAnError) {
  const absl::Status status = AllocateHost(std::numeric_limits<int64_t>::max() / 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(Tensor, HostTensorIsNotCopiedToTheHost) {
  const float data = 1;
  EXPECT_EQ(ToHost(Tensor{TensorView(&data, {}), nullptr}).value().view.data(), &data);
}

}  // namespace
}  // namespace ott
