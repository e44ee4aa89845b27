#include "ott/core/tensor/strided_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ott/core/base/check.h"

namespace ott {
namespace {

// The tensor's dimensions with those merged that are one run in memory, and dimensions of size 1 left out.
struct Layout {
  Dims shape;
  Dims strides;  // in bytes
};

Layout Merge(const TensorView& tensor) {
  const int64_t element_bytes = SizeOf(tensor.dtype());
  Layout layout;
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    const int64_t size = tensor.shape()[i];
    const int64_t stride = tensor.strides()[i] * element_bytes;
    if (size == 1) continue;
    if (!layout.shape.empty() && layout.strides.back() == size * stride) {
      layout.shape.back() *= size;
      layout.strides.back() = stride;
    } else {
      layout.shape.push_back(size);
      layout.strides.push_back(stride);
    }
  }
  if (layout.shape.empty()) {
    layout.shape.push_back(1);
    layout.strides.push_back(element_bytes);
  }
  return layout;
}

template <size_t kElementBytes>
void CopyRow(const char* from, int64_t stride, int64_t count, char* to) {
  if (stride == static_cast<int64_t>(kElementBytes)) {
    std::memcpy(to, from, count * kElementBytes);
    return;
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * kElementBytes, from + i * stride, kElementBytes);
}

void CopyRow(int64_t element_bytes, const char* from, int64_t stride, int64_t count, char* to) {
  switch (element_bytes) {
    case 1:
      return CopyRow<1>(from, stride, count, to);
    case 2:
      return CopyRow<2>(from, stride, count, to);
    case 4:
      return CopyRow<4>(from, stride, count, to);
    case 8:
      return CopyRow<8>(from, stride, count, to);
    default:
      return CopyRow<16>(from, stride, count, to);
  }
}

}  // namespace

void CopyElements(const TensorView& tensor, int64_t begin, int64_t end, void* destination) {
  OTT_CHECK(tensor.device().kind == Device::Kind::kHost) << "the tensor is not in host memory";
  OTT_CHECK(0 <= begin && begin <= end && end <= tensor.num_elements())
      << "[" << begin << ", " << end << ") of " << tensor.num_elements();
  if (begin == end) return;

  const int64_t element_bytes = SizeOf(tensor.dtype());
  const Layout layout = Merge(tensor);
  const size_t last = layout.shape.size() - 1;
  Dims index = IndexAt(layout.shape, begin);
  const char* source = static_cast<const char*>(tensor.data());
  for (size_t i = 0; i <= last; ++i) source += index[i] * layout.strides[i];

  char* to = static_cast<char*>(destination);
  int64_t left = end - begin;
  while (true) {
    const int64_t count = std::min(left, layout.shape[last] - index[last]);
    CopyRow(element_bytes, source, layout.strides[last], count, to);
    left -= count;
    if (left == 0) return;
    to += count * element_bytes;
    // To the start of the next row.
    source -= index[last] * layout.strides[last];
    index[last] = 0;
    for (size_t i = last; i-- > 0;) {
      source += layout.strides[i];
      if (++index[i] < layout.shape[i]) break;
      source -= index[i] * layout.strides[i];
      index[i] = 0;
    }
  }
}

}  // namespace ott
