// What is different about one element of two tensors.

#ifndef OTT_DIST_ELEMENT_DIFFERENCE_H_
#define OTT_DIST_ELEMENT_DIFFERENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ott/core/tensor/dtype.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// The first element of elements of `element_size` bytes whose bits differ; nothing where all are equal.
// REQUIRES: a.size() == b.size()
std::optional<int64_t> FirstDifferentElement(std::string_view a, std::string_view b, int64_t element_size);

// The index in each dimension of an element counted in row-major order.
Dims MultiIndex(int64_t element, absl::Span<const int64_t> shape);

// The shortest text that reads back as the same value.
std::string FormatElement(DType dtype, const void* element);

// How many representable values lie between, counting one of the two; 0 between +0 and -0. Nothing for NaN
// and for complex types; for integers the distance.
std::optional<uint64_t> UlpDistance(DType dtype, const void* a, const void* b);

// The bits that differ, ascending; bit 0 is the least significant.
std::vector<int> FlippedBits(DType dtype, const void* a, const void* b);

// "sign", "exponent" or "mantissa" of a floating-point type; empty for others.
std::string_view BitName(DType dtype, int bit);

}  // namespace ott

#endif  // OTT_DIST_ELEMENT_DIFFERENCE_H_
