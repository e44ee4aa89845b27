// A tensor in memory that somebody else owns.

#ifndef OTT_CORE_TENSOR_TENSOR_VIEW_H_
#define OTT_CORE_TENSOR_TENSOR_VIEW_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/tensor/dtype.h"
#include "ott/core/tensor/element.h"

namespace ott {

struct Device {
  enum class Kind : uint8_t { kHost, kCuda };
  Kind kind = Kind::kHost;
  int ordinal = 0;
  // The cudaStream_t whose work the tensor's contents depend on; null: the default stream.
  void* stream = nullptr;
};

// Shapes and strides of up to six dimensions need no allocation.
using Dims = absl::InlinedVector<int64_t, 6>;

// dtype, shape, strides and place of a tensor. Does not own the memory, which must outlive the view.
// Copyable; a view is never changed after construction, so it may be read from any thread.
//
// A view whose shape, strides and data make no tensor is refused: it has no elements, the first, tenth,
// hundredth
// ... is logged to stderr, and what copies, compares or dumps tensors returns its status().
// OTT_ON_MISUSE=abort in the environment aborts instead.
//
//   float weights[64][32];
//   TensorView view(&weights[0][0], {64, 32});
class TensorView {
 public:
  // Row-major and contiguous, in host memory. T is a C++ type with a DType: float, double, (u)int8..64_t,
  // bool, std::complex<float>, std::complex<double>.
  template <typename T>
  TensorView(const T* data, absl::Span<const int64_t> shape);

  // Row-major and contiguous. data may be null if there are no elements.
  // REQUIRES: no negative dimension; the bytes of all elements fit into an int64_t
  TensorView(const void* data, DType dtype, absl::Span<const int64_t> shape, Device device = {});

  // strides: in elements, may be 0 or negative; data points at element [0, ..., 0].
  // REQUIRES: as above, and strides.size() == shape.size()
  TensorView(const void* data, DType dtype, absl::Span<const int64_t> shape,
             absl::Span<const int64_t> strides, Device device = {});

  const void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  const Device& device() const { return device_; }

  int64_t num_elements() const { return num_elements_; }
  // Bytes of the elements, gaps between them not counted.
  int64_t num_bytes() const { return num_elements_ * SizeOf(dtype_); }
  // Returns true if it is row-major without gaps.
  bool is_contiguous() const;
  // INVALID_ARGUMENT if it breaks what its constructor requires, and so has none of the elements that were
  // meant.
  absl::Status status() const;
  // Returns how many this process refused.
  static int64_t num_refused();

 private:
  void Refuse(std::string_view kind, const std::string& message);

  const void* data_;
  DType dtype_;
  bool is_refused_ = false;
  Dims shape_;
  Dims strides_;
  Device device_;
  int64_t num_elements_ = 0;
};

// Returns the same memory with the axes in another order: axis i of the result is axes[i] of the tensor, as
// in torch.permute; negative ones count from the end. INVALID_ARGUMENT unless each axis is there once.
absl::StatusOr<TensorView> PermuteAxes(const TensorView& tensor, absl::Span<const int> axes);

// Returns "[2, 3]".
std::string ShapeToString(absl::Span<const int64_t> shape);

// Returns the index of a row-major position: 5 in [2, 3] is {1, 2}.
Dims IndexAt(absl::Span<const int64_t> shape, int64_t position);

// Returns the bytes of a tensor of this shape. INVALID_ARGUMENT for a negative dimension or more bytes than
// an int64_t counts.
absl::StatusOr<int64_t> CheckedNumBytes(DType dtype, absl::Span<const int64_t> shape);

template <typename T>
TensorView::TensorView(const T* data, absl::Span<const int64_t> shape)
    : TensorView(data, DTypeOf<T>(), shape) {}

}  // namespace ott

#endif  // OTT_CORE_TENSOR_TENSOR_VIEW_H_
