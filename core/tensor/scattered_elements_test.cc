#include "ott/core/tensor/scattered_elements.h"

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::HasSubstr;

// Elements whose bytes tell them apart.
std::vector<char> Bytes(int64_t num_bytes) {
  std::vector<char> bytes(static_cast<size_t>(num_bytes));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 256);
  return bytes;
}

struct Box {
  Dims offset;
  Dims shape;
};

TEST(ScatteredElements, OfAnyPartsEachRangeIsThatOfTheWholeAndIsFoundWhereItLiesInOnePiece) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t end) { return static_cast<int64_t>(random() % end); };
    constexpr DType kDTypes[] = {DType::kInt8, DType::kFloat32, DType::kFloat64, DType::kComplex64};
    const DType dtype = kDTypes[below(4)];
    const int64_t size = SizeOf(dtype), alignment = IsComplex(dtype) ? size / 2 : size;
    Dims shape(static_cast<size_t>(below(4)));
    int64_t count = 1;
    for (int64_t& extent : shape) count *= extent = 1 + below(4);
    std::vector<Box> boxes = {{Dims(shape.size()), shape}};
    for (int64_t cuts = shape.empty() ? 0 : below(6); cuts > 0; --cuts) {
      Box& first = boxes[static_cast<size_t>(below(boxes.size()))];
      const auto dim = static_cast<size_t>(below(shape.size()));
      if (first.shape[dim] < 2) continue;
      Box second = first;
      const int64_t at = 1 + below(static_cast<size_t>(first.shape[dim] - 1));
      second.offset[dim] += first.shape[dim] = at;
      second.shape[dim] -= at;
      boxes.insert(boxes.begin() + below(boxes.size() + 1), second);
    }
    const std::vector<char> whole = Bytes(count * size);
    // places[i] says where element i of the whole lies, if it can be read there.
    std::vector<const char*> places(static_cast<size_t>(count));
    std::vector<size_t> box_of(places.size());
    std::vector<std::vector<char>> memory;
    std::vector<TensorPart> parts;
    for (const Box& box : boxes) {
      // It may have gaps, and its start may not be aligned.
      const int64_t step = below(4) == 0 ? 2 : 1, shift = below(4) == 0 ? 1 : below(3) * alignment;
      Dims strides(box.shape.size());
      int64_t reach = step;
      for (size_t dim = strides.size(); dim-- > 0; reach *= box.shape[dim]) strides[dim] = reach;
      memory.emplace_back(static_cast<size_t>(shift + reach * size + 16));
      char* const data = memory.back().data() + shift;
      const TensorView view(data, dtype, box.shape, strides);
      for (int64_t i = 0; i < view.num_elements(); ++i) {
        const Dims index = IndexAt(box.shape, i);
        int64_t at = 0;
        for (size_t dim = 0; dim < shape.size(); ++dim) at = at * shape[dim] + box.offset[dim] + index[dim];
        std::memcpy(data + i * step * size, &whole[static_cast<size_t>(at * size)],
                    static_cast<size_t>(size));
        box_of[static_cast<size_t>(at)] = parts.size();
        if (view.is_contiguous() && shift % alignment == 0) places[static_cast<size_t>(at)] = data + i * size;
      }
      parts.push_back({{view, nullptr}, box.offset});
    }
    const bool is_flat = below(2) == 0;
    const Dims joined_shape = is_flat ? Dims{count} : shape;
    const auto joined = ScatteredElements::Join(dtype, joined_shape, shape, parts).value();
    EXPECT_EQ(joined.view.shape(), joined_shape);
    const Tensor gathered = *CloneToHost(Gathered(joined)->view);
    EXPECT_EQ(std::memcmp(gathered.view.data(), whole.data(), whole.size()), 0);
    if (joined.scattered == nullptr) {
      EXPECT_EQ(parts.size(), 1u);
      continue;
    }
    for (int64_t begin = 0; begin < count; ++begin) {
      bool is_one_piece = true;
      for (int64_t end = begin + 1; end <= count; ++end) {
        std::vector<char> copy(static_cast<size_t>((end - begin) * size));
        joined.scattered->Copy(begin, end, copy.data());
        EXPECT_EQ(std::memcmp(copy.data(), &whole[static_cast<size_t>(begin * size)], copy.size()), 0);
        const auto first = static_cast<size_t>(begin), last = static_cast<size_t>(end - 1);
        is_one_piece = is_one_piece && places[last] != nullptr && box_of[last] == box_of[first] &&
                       places[last] == places[first] + (end - 1 - begin) * size;
        EXPECT_EQ(joined.scattered->Find(begin, end), is_one_piece ? places[first] : nullptr);
      }
    }
  }
}

TEST(ScatteredElements, PartsThatAreNoWholeAreErrors) {
  static constexpr float kZeros[24] = {};
  const auto rows = [](int64_t first, int64_t count) {
    return TensorPart{{TensorView(kZeros, {count, 6}), nullptr}, {first, 0}};
  };
  const auto error = [](std::vector<TensorPart> parts) {
    return std::string(
        ScatteredElements::Join(DType::kFloat32, {4, 6}, {4, 6}, std::move(parts)).status().message());
  };
  EXPECT_THAT(error({rows(0, 2)}), HasSubstr("its parts have 12 of 24 elements"));
  const auto half = ScatteredElements::Join(DType::kFloat32, {12}, {4, 6}, {rows(0, 2)});
  EXPECT_EQ(half.status().message(), "two shapes of other numbers of elements");
  std::vector<TensorPart> many;
  for (int64_t i = 0; i < 20001; ++i) many.push_back({{TensorView(kZeros, {1}), nullptr}, {i}});
  EXPECT_EQ(ScatteredElements::Join(DType::kFloat32, {20001}, {20001}, many).status().message(),
            "20001 parts");
  EXPECT_EQ(error({{{TensorView(kZeros, {4}), nullptr}, {0, 0}}}),
            "a part of [4] at [0, 0] is not within [4, 6]");
  EXPECT_THAT(error({rows(0, 3), rows(2, 1)}), HasSubstr("[0, 0] and [2, 0] overlap"));
  for (const Dims& offset : {Dims{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {5, 0}, {0}, {0, 0, 0}}) {
    TensorPart outside = rows(0, 4);
    outside.offset = offset;
    EXPECT_EQ(error({outside}),
              absl::StrCat("a part of [4, 6] at ", ShapeToString(offset), " is not within [4, 6]"));
  }
}

}  // namespace
}  // namespace ott
