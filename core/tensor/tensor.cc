#include "ott/core/tensor/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/strided_copy.h"

namespace ott {
namespace {

// No process has more; allocators take such a request for a mistake.
constexpr int64_t kAddressSpaceBytes = int64_t{1} << 47;

// The memory from the first to the last byte that the tensor's elements lie in, in host memory, as a view
// with the same strides.
absl::StatusOr<Tensor> CopySpanToHost(const TensorView& tensor) {
  int64_t lowest = 0;
  int64_t highest = 0;
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    const int64_t reach = (tensor.shape()[i] - 1) * tensor.strides()[i];
    (reach < 0 ? lowest : highest) += reach;
  }
  const int64_t element_bytes = SizeOf(tensor.dtype());
  const int64_t num_bytes = (highest - lowest + 1) * element_bytes;
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, AllocateHost(num_bytes));
  const char* source = static_cast<const char*>(tensor.data()) + lowest * element_bytes;
  OTT_RETURN_IF_ERROR(CopyToHost(source, num_bytes, tensor.device(), memory.get()));
  const char* first = static_cast<const char*>(memory.get()) - lowest * element_bytes;
  return Tensor{TensorView(first, tensor.dtype(), tensor.shape(), tensor.strides()), std::move(memory)};
}

}  // namespace

Tensor ItemOf(const Tensor& tensor, int64_t i) {
  OTT_CHECK(tensor.scattered == nullptr);
  const TensorView& view = tensor.view;
  const char* const data =
      static_cast<const char*>(view.data()) + i * view.strides()[0] * SizeOf(view.dtype());
  return {TensorView(data, view.dtype(), absl::MakeConstSpan(view.shape()).subspan(1),
                     absl::MakeConstSpan(view.strides()).subspan(1), view.device()),
          tensor.owner, tensor.file_backed, tensor.dtype_known};
}

absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t num_bytes) {
  const auto alignment = static_cast<std::align_val_t>(num_bytes >= kHugePageBytes ? kHugePageBytes : 64);
  // A tensor without elements still has an address.
  void* const memory = num_bytes < kAddressSpaceBytes
                           ? ::operator new(std::max<int64_t>(num_bytes, 1), alignment, std::nothrow)
                           : nullptr;
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a tensor of ", num_bytes, " bytes"));
  }
  // Only whole ones, so that no more memory is used. Where the machine has none, it goes on as before.
  if (num_bytes >= kHugePageBytes) {
    madvise(memory, num_bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  }
  return std::shared_ptr<void>(memory, [alignment](void* p) { ::operator delete(p, alignment); });
}

absl::StatusOr<Tensor> CloneToHost(const TensorView& tensor, const HostAllocator& allocate) {
  OTT_RETURN_IF_ERROR(tensor.status());
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, allocate(tensor.num_bytes()));
  Tensor clone{TensorView(memory.get(), tensor.dtype(), tensor.shape()), memory};
  if (tensor.num_elements() == 0) return clone;
  if (tensor.device().kind == Device::Kind::kHost) {
    CopyElements(tensor, 0, tensor.num_elements(), memory.get());
  } else if (tensor.is_contiguous()) {
    OTT_RETURN_IF_ERROR(CopyToHost(tensor.data(), tensor.num_bytes(), tensor.device(), memory.get()));
  } else {
    OTT_ASSIGN_OR_RETURN(const Tensor span, CopySpanToHost(tensor));
    CopyElements(span.view, 0, tensor.num_elements(), memory.get());
  }
  return clone;
}

absl::StatusOr<Tensor> StartCloneToHost(const TensorView& tensor, const HostAllocator& allocate,
                                        std::vector<CopyDone>* done) {
  if (!tensor.is_contiguous() || tensor.num_elements() == 0) return CloneToHost(tensor);
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, allocate(tensor.num_bytes()));
  OTT_ASSIGN_OR_RETURN(CopyDone copied,
                       StartCopyToHost(tensor.data(), tensor.num_bytes(), tensor.device(), memory.get()));
  void* const data = memory.get();
  // The device writes into the memory until then, whoever drops the tensor.
  const std::shared_ptr<void> owner(data,
                                    [memory = std::move(memory), copied](void*) { copied().IgnoreError(); });
  done->push_back([copied = std::move(copied), owner] { return copied(); });
  return Tensor{TensorView(data, tensor.dtype(), tensor.shape()), owner};
}

absl::StatusOr<Tensor> ToHost(const Tensor& tensor) {
  OTT_RETURN_IF_ERROR(tensor.view.status());
  if (tensor.view.device().kind == Device::Kind::kHost) return tensor;
  return CloneToHost(tensor.view);
}

}  // namespace ott
