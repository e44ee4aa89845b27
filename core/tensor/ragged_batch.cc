#include "ott/core/tensor/ragged_batch.h"

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

absl::StatusOr<std::vector<int64_t>> SizesOf(const RaggedBatch& batch) {
  const Dims& shape = batch.data.view.shape();
  const Dims& sizes_shape = batch.sample_sizes.view.shape();
  const int num_dims = static_cast<int>(shape.size());
  if (batch.num_batch_dims < 1 || batch.non_uniform_dim < batch.num_batch_dims ||
      batch.non_uniform_dim >= num_dims ||
      sizes_shape != Dims(shape.begin(), shape.begin() + batch.num_batch_dims)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no ragged batch: data ", ShapeToString(shape), ", sample sizes ", ShapeToString(sizes_shape), ", ",
        batch.num_batch_dims, " batch dimensions, dimension ", batch.non_uniform_dim, " is not uniform"));
  }
  OTT_ASSIGN_OR_RETURN(const Tensor host, CloneToHost(batch.sample_sizes.view));
  const int64_t largest = shape[batch.non_uniform_dim];
  return VisitDType(host.view.dtype(), [&](auto element) -> absl::StatusOr<std::vector<int64_t>> {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      std::vector<int64_t> sizes;
      const T* const first = static_cast<const T*>(host.view.data());
      for (int64_t i = 0; i < host.view.num_elements(); ++i) {
        const int64_t size = static_cast<int64_t>(first[i]);
        if (size < 0 || size > largest) {
          return absl::InvalidArgumentError(
              absl::StrCat("no ragged batch: sample ", i, " has size ", size, " of at most ", largest));
        }
        sizes.push_back(size);
      }
      return sizes;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("no ragged batch: its sample sizes are ", std::string(Name(DTypeOf<T>()))));
    }
  });
}

// dim: of the tensor.
Value Split(const Tensor& tensor, int num_batch_dims, int dim, absl::Span<const int64_t>& sizes) {
  if (num_batch_dims == 0) {
    const TensorView& view = tensor.view;
    Dims shape = view.shape();
    shape[dim] = sizes.front();
    sizes.remove_prefix(1);
    Tensor sample = tensor;
    sample.view = TensorView(view.data(), view.dtype(), shape, view.strides(), view.device());
    return sample;
  }
  Value::List items;
  for (int64_t i = 0; i < tensor.view.shape()[0]; ++i) {
    items.push_back(Split(ItemOf(tensor, i), num_batch_dims - 1, dim - 1, sizes));
  }
  return items;
}

}  // namespace

Value RaggedBatchStructure(const RaggedBatch& batch) {
  return ValueMap{{"data", batch.data},
                  {"sample_sizes", batch.sample_sizes},
                  {"non_uniform_dim", batch.non_uniform_dim},
                  {"num_batch_dims", batch.num_batch_dims}};
}

absl::StatusOr<Value> RaggedBatchSamples(const RaggedBatch& batch) {
  OTT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(batch));
  absl::Span<const int64_t> left = sizes;
  return Split(batch.data, batch.num_batch_dims, batch.non_uniform_dim, left);
}

}  // namespace ott
