#include "ott/core/tensor/strided_copy.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

// Does what CopyElements promises, one element at a time.
std::vector<int32_t> ByIndex(const TensorView& view, int64_t begin, int64_t end) {
  std::vector<int32_t> elements;
  for (int64_t i = begin; i < end; ++i) {
    const Dims index = IndexAt(view.shape(), i);
    const int32_t* element = static_cast<const int32_t*>(view.data());
    for (size_t d = 0; d < index.size(); ++d) element += index[d] * view.strides()[d];
    elements.push_back(*element);
  }
  return elements;
}

struct Case {
  int first;  // where data() points
  Dims shape;
  Dims strides;
};

TEST(StridedCopy, EveryRangeOfElementsIsCopiedInOrder) {
  std::vector<int32_t> memory(120);
  std::iota(memory.begin(), memory.end(), 1000);
  for (const auto& [first, shape, strides] :
       std::vector<Case>{{0, {2, 3, 4}, {12, 4, 1}},      // contiguous
                         {0, {4, 3, 2}, {1, 4, 12}},      // transposed
                         {23, {2, 3, 4}, {-12, -4, -1}},  // reversed
                         {5, {3, 4}, {0, 1}},             // broadcast rows
                         {5, {4, 3}, {1, 0}},             // broadcast columns
                         {2, {3, 2, 4}, {40, 10, 2}},     // every second element of wider rows
                         {7, {}, {}},                     // 0-d
                         {0, {3, 0}, {1, 1}},             // no elements
                         {0, {1, 5, 1}, {9, 2, 7}}}) {
    const TensorView view(memory.data() + first, DType::kInt32, shape, strides);
    for (int64_t begin = 0; begin <= view.num_elements(); ++begin) {
      for (int64_t end = begin; end <= view.num_elements(); ++end) {
        std::vector<int32_t> copy(end - begin);
        CopyElements(view, begin, end, copy.data());
        ASSERT_EQ(copy, ByIndex(view, begin, end)) << ShapeToString(shape) << begin << " to " << end;
      }
    }
  }
}

TEST(StridedCopy, CopiesElementsOfEverySize) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kComplex128}) {
    const size_t size = SizeOf(dtype);
    std::vector<char> memory(6 * size);
    std::iota(memory.begin(), memory.end(), 1);
    std::vector<char> copy(3 * size);
    CopyElements(TensorView(memory.data(), dtype, {3}, {2}), 0, 3, copy.data());
    for (size_t i = 0; i < copy.size(); ++i) ASSERT_EQ(copy[i], memory[i / size * 2 * size + i % size]);
  }
}

}  // namespace
}  // namespace ott
