#include "ott/core/tensor/tensor_view.h"

#include <complex>
#include <cstdlib>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TensorView, IsRowMajorWhereNoStridesAreGiven) {
  const float data[24] = {};
  const TensorView view(data, {2, 3, 4});
  EXPECT_EQ(view.dtype(), DType::kFloat32);
  EXPECT_EQ(view.strides(), Dims({12, 4, 1}));
  EXPECT_EQ(view.num_elements(), 24);
  EXPECT_EQ(view.num_bytes(), 96);
  EXPECT_EQ(IndexAt(view.shape(), 23), Dims({1, 2, 3}));
  EXPECT_EQ(IndexAt({}, 0), Dims());
  const std::complex<double> number = 1;
  const TensorView scalar(&number, {}), none(nullptr, DType::kInt8, {3, 0, 5});
  EXPECT_EQ(scalar.num_elements(), 1);
  EXPECT_EQ(scalar.num_bytes(), 16);
  EXPECT_EQ(none.num_elements(), 0);
  for (const TensorView* const of : {&view, &scalar, &none}) EXPECT_TRUE(of->is_contiguous());
}

TEST(TensorView, TransposedReversedOrBroadcastIsNotContiguous) {
  const float data[6] = {};
  EXPECT_FALSE(TensorView(data, DType::kFloat32, {3, 2}, {1, 3}).is_contiguous());
  EXPECT_FALSE(TensorView(data + 5, DType::kFloat32, {6}, {-1}).is_contiguous());
  EXPECT_FALSE(TensorView(data, DType::kFloat32, {4}, {0}).is_contiguous());
  // Strides of dimensions of size one do not matter.
  EXPECT_TRUE(TensorView(data, DType::kFloat32, {1, 6, 1}, {77, 1, -3}).is_contiguous());
}

TEST(TensorView, AxesArePermutedAsInTorch) {
  const float data[24] = {};
  const TensorView view(data, {2, 3, 4});
  const TensorView permuted = PermuteAxes(view, {2, 0, -2}).value();
  EXPECT_EQ(permuted.shape(), Dims({4, 2, 3}));
  EXPECT_EQ(permuted.strides(), Dims({1, 12, 4}));
  EXPECT_EQ(permuted.data(), data);
  EXPECT_TRUE(PermuteAxes(TensorView(data, {}), {}).ok());
  EXPECT_EQ(PermuteAxes(view, {0, 1}).status().message(),
            "[0, 1] is no permutation of the axes of shape [2, 3, 4]");
  for (const std::vector<int>& axes : {std::vector<int>{0, 1, 1}, {0, 1, 3}, {0, 1, -4}, {0, 1, 2, 2}, {}}) {
    EXPECT_FALSE(PermuteAxes(view, axes).ok());
  }
}

TEST(TensorView, ShapesThatAreNoTensorAreErrors) {
  EXPECT_EQ(CheckedNumBytes(DType::kInt8, {2, -1}).status().message(),
            "shape [2, -1] has a negative dimension");
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(CheckedNumBytes(DType::kInt8, {max}).ok());
  EXPECT_FALSE(CheckedNumBytes(DType::kInt16, {max}).ok());
  EXPECT_FALSE(CheckedNumBytes(DType::kInt8, {0, max, max}).ok());
}

TEST(TensorView, WhatIsNoTensorIsRefusedAndCountedAndHasNoElements) {
  const float data[6] = {};
  const int64_t max = std::numeric_limits<int64_t>::max();
  const int64_t before = TensorView::num_refused();
  testing::internal::CaptureStderr();
  for (const TensorView& view :
       {TensorView(data, DType::kFloat32, {2, 3}, {1}), TensorView(data, DType::kFloat32, {2, -3}),
        TensorView(data, DType::kFloat32, {max, max}), TensorView(nullptr, DType::kFloat32, {2})}) {
    EXPECT_TRUE(absl::IsInvalidArgument(view.status())) << view.status();
    EXPECT_EQ(view.num_elements(), 0);
    EXPECT_EQ(view.num_bytes(), 0);
    EXPECT_EQ(view.data(), nullptr);
    EXPECT_EQ(view.shape(), Dims({0}));
    EXPECT_EQ(view.strides(), Dims({1}));
    EXPECT_TRUE(view.is_contiguous());
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("ott: TensorView: 1 strides for shape [2, 3]\n"),
                    HasSubstr("ott: TensorView: no data for shape [2]\n")));
  EXPECT_EQ(TensorView::num_refused(), before + 4);
  EXPECT_TRUE(TensorView(data, {2, 3}).status().ok());
}

TEST(TensorViewDeathTest, WhatIsNoTensorAbortsWhereThatIsAskedFor) {
  EXPECT_DEATH(
      {
        setenv("OTT_ON_MISUSE", "abort", 1);
        TensorView(nullptr, DType::kFloat32, {2});
      },
      "no data for shape \\[2\\]");
}

}  // namespace
}  // namespace ott
