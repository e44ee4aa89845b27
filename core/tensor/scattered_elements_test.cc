#include "ott/core/tensor/scattered_elements.h"

#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::HasSubstr;

// The box of a [rows, columns] tensor of counting numbers, as rows of its own.
struct Source {
  explicit Source(int64_t rows, int64_t columns) : columns(columns), elements(rows * columns) {
    std::iota(elements.begin(), elements.end(), 0.0f);
  }
  TensorPart Box(int64_t row, int64_t column, int64_t num_rows, int64_t num_columns) const {
    const TensorView view(&elements[row * columns + column], DType::kFloat32, {num_rows, num_columns},
                          {columns, 1});
    return {*CloneToHost(view), {row, column}};
  }
  int64_t columns;
  std::vector<float> elements;
};

std::vector<float> Copied(const Tensor& tensor, int64_t begin, int64_t end) {
  std::vector<float> copy(end - begin);
  tensor.scattered->Copy(begin, end, copy.data());
  return copy;
}

TEST(ScatteredElements, AnyRangeIsCopiedAsOfTheWhole) {
  const Source source(4, 6);
  for (const std::vector<TensorPart>& parts :
       {std::vector<TensorPart>{source.Box(0, 0, 1, 6), source.Box(1, 0, 3, 6)},
        {source.Box(0, 4, 4, 2), source.Box(0, 0, 4, 4)},
        {source.Box(2, 0, 2, 3), source.Box(0, 0, 2, 6), source.Box(2, 3, 2, 3)}}) {
    const auto whole = ScatteredElements::Join(DType::kFloat32, {4, 6}, {4, 6}, parts);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (int64_t begin = 0; begin <= 24; ++begin) {
      for (int64_t end = begin; end <= 24; ++end) {
        EXPECT_EQ(Copied(*whole, begin, end),
                  std::vector<float>(source.elements.begin() + begin, source.elements.begin() + end));
      }
    }
  }
}

TEST(ScatteredElements, RangesOfAFlatBufferAreATensor) {
  const Source source(1, 12);
  const auto whole = ScatteredElements::Join(
      DType::kFloat32, {3, 4}, {12},
      {TensorPart{{TensorView(&source.elements[5], DType::kFloat32, {7}), nullptr}, {5}},
       TensorPart{{TensorView(&source.elements[0], DType::kFloat32, {5}), nullptr}, {0}}});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->view.shape(), Dims({3, 4}));
  EXPECT_EQ(Copied(*whole, 0, 12), source.elements);
  EXPECT_EQ(whole->scattered->Find(6, 12), &source.elements[6]);
  EXPECT_EQ(whole->scattered->Find(4, 6), nullptr);
}

TEST(ScatteredElements, APartThatIsNotAlignedIsCopied) {
  alignas(8) char bytes[9] = {};
  const float number = 2.5f;
  std::memcpy(bytes + 1, &number, sizeof(number));
  const auto whole = ScatteredElements::Join(
      DType::kFloat32, {1}, {1}, {TensorPart{{TensorView(bytes + 1, DType::kFloat32, {1}), nullptr}, {0}}});
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_NE(whole->scattered, nullptr);
  EXPECT_EQ(whole->scattered->Find(0, 1), nullptr);
  EXPECT_EQ(Copied(*whole, 0, 1), std::vector<float>{2.5f});
  // A complex number is aligned as its parts are.
  alignas(8) const float parts[3] = {};
  const TensorPart number_part = {{TensorView(parts + 1, DType::kComplex64, {1}), nullptr}, {0}};
  EXPECT_EQ(ScatteredElements::Join(DType::kComplex64, {1}, {1}, {number_part})->view.data(), parts + 1);
}

TEST(ScatteredElements, PartsThatAreNoWholeAreErrors) {
  const Source source(4, 6);
  const auto error = [](std::vector<TensorPart> parts) {
    return std::string(
        ScatteredElements::Join(DType::kFloat32, {4, 6}, {4, 6}, std::move(parts)).status().message());
  };
  EXPECT_THAT(error({source.Box(0, 0, 2, 6)}), HasSubstr("its parts have 12 of 24 elements"));
  EXPECT_THAT(error({source.Box(0, 0, 3, 6), source.Box(2, 0, 1, 6)}),
              HasSubstr("[0, 0] and [2, 0] overlap"));
  for (const Dims& offset : {Dims{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {5, 0}, {0}, {0, 0, 0}}) {
    TensorPart outside = source.Box(0, 0, 4, 6);
    outside.offset = offset;
    EXPECT_EQ(error({outside}),
              absl::StrCat("a part of [4, 6] at ", ShapeToString(offset), " is not within [4, 6]"));
  }
}

}  // namespace
}  // namespace ott
