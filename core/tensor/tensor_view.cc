#include "ott/core/tensor/tensor_view.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/misuse_log.h"

namespace ott {
namespace {

Dims ContiguousStrides(absl::Span<const int64_t> shape) {
  Dims strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    // A shape that overflows is refused by the constructor, after this.
    if (shape[i] > 0) (void)__builtin_mul_overflow(stride, shape[i], &stride);
  }
  return strides;
}

internal::MisuseLog& Misuses() {
  static auto* const misuses = new internal::MisuseLog("TensorView");
  return *misuses;
}

}  // namespace

std::string ShapeToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<TensorView> PermuteAxes(const TensorView& tensor, absl::Span<const int> axes) {
  const int num_dims = static_cast<int>(tensor.shape().size());
  Dims shape;
  Dims strides;
  absl::InlinedVector<bool, 6> used(num_dims, false);
  for (const int axis : axes) {
    const int from = axis < 0 ? axis + num_dims : axis;
    if (from < 0 || from >= num_dims || std::exchange(used[from], true)) break;
    shape.push_back(tensor.shape()[from]);
    strides.push_back(tensor.strides()[from]);
  }
  if (shape.size() != axes.size() || static_cast<int>(shape.size()) != num_dims) {
    return absl::InvalidArgumentError(absl::StrCat("[", absl::StrJoin(axes, ", "),
                                                   "] is no permutation of the axes of shape ",
                                                   ShapeToString(tensor.shape())));
  }
  return TensorView(tensor.data(), tensor.dtype(), shape, strides, tensor.device());
}

Dims IndexAt(absl::Span<const int64_t> shape, int64_t position) {
  Dims index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = position % shape[i];
    position /= shape[i];
  }
  return index;
}

absl::StatusOr<int64_t> CheckedNumBytes(DType dtype, absl::Span<const int64_t> shape) {
  bool empty = false;
  for (const int64_t dimension : shape) {
    if (dimension < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeToString(shape), " has a negative dimension"));
    }
    empty |= dimension == 0;
  }
  // Dimensions of size 0 are left out, so that strides cannot overflow either.
  int64_t bytes = SizeOf(dtype);
  for (const int64_t dimension : shape) {
    if (dimension > 0 && __builtin_mul_overflow(bytes, dimension, &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", ShapeToString(shape), " has more than 2^63 bytes of ", std::string(Name(dtype))));
    }
  }
  return empty ? 0 : bytes;
}

TensorView::TensorView(const void* data, DType dtype, absl::Span<const int64_t> shape, Device device)
    : TensorView(data, dtype, shape, ContiguousStrides(shape), device) {}

TensorView::TensorView(const void* data, DType dtype, absl::Span<const int64_t> shape,
                       absl::Span<const int64_t> strides, Device device)
    : data_(data),
      dtype_(dtype),
      shape_(shape.begin(), shape.end()),
      strides_(strides.begin(), strides.end()),
      device_(device) {
  const absl::StatusOr<int64_t> num_bytes = CheckedNumBytes(dtype, shape);
  if (strides.size() != shape.size()) {
    Refuse("strides of another number of dimensions",
           absl::StrCat(strides.size(), " strides for shape ", ShapeToString(shape)));
  } else if (!num_bytes.ok()) {
    Refuse("a shape that no tensor has", std::string(num_bytes.status().message()));
  } else if (data == nullptr && *num_bytes > 0) {
    Refuse("no data", absl::StrCat("no data for shape ", ShapeToString(shape)));
  } else {
    num_elements_ = *num_bytes / SizeOf(dtype);
  }
}

absl::Status TensorView::status() const {
  if (!is_refused_) return absl::OkStatus();
  return absl::InvalidArgumentError("a TensorView that was refused when it was made, as stderr says");
}

int64_t TensorView::num_refused() { return Misuses().total(); }

void TensorView::Refuse(std::string_view kind, const std::string& message) {
  Misuses().Report(OnMisuse::kLogAndCount, kind, message);
  is_refused_ = true;
  data_ = nullptr;
  shape_ = {0};
  strides_ = {1};
  device_ = {};
}

bool TensorView::is_contiguous() const {
  if (num_elements_ == 0) return true;
  int64_t stride = 1;
  for (size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] != 1 && strides_[i] != stride) return false;
    stride *= shape_[i];
  }
  return true;
}

}  // namespace ott
