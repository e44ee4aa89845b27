// A tensor together with what keeps its memory alive.

#ifndef OTT_CORE_TENSOR_TENSOR_H_
#define OTT_CORE_TENSOR_TENSOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/device_copy.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

class ScatteredElements;

struct Tensor {
  TensorView view;
  // Null if somebody else sees to it that the memory outlives this.
  std::shared_ptr<const void> owner;
  // The memory is a file's, mapped and unchanged, so its pages can be dropped and will be read again.
  bool file_backed = false;
  // False: the numbers came without a dtype, as in JSON, and view.dtype() is only what holds them here.
  bool dtype_known = true;
  // The elements are here instead of at view.data() (scattered_elements.h); null: there. Only tensors of
  // checkpoints have it, and only functions that say so take them.
  std::shared_ptr<const ScatteredElements> scattered = nullptr;
};

// Item i along the first dimension. Shares the memory.
// REQUIRES: 0 <= i < tensor.view.shape()[0]; the tensor is not scattered
Tensor ItemOf(const Tensor& tensor, int64_t i);

// A large allocation is aligned to this, and asks the machine to hand out at once: the first write to each
// page of 4 KiB takes longer than writing it.
inline constexpr int64_t kHugePageBytes = int64_t{2} << 20;

// Allocates uninitialised host memory, aligned to 64 bytes, or to huge pages if it has some.
// RESOURCE_EXHAUSTED if there is not enough.
absl::StatusOr<std::shared_ptr<void>> AllocateHost(int64_t num_bytes);

using HostAllocator = std::function<absl::StatusOr<std::shared_ptr<void>>(int64_t num_bytes)>;

// Returns a row-major copy without gaps in host memory of its own. Waits for the device the tensor is on.
// Returns the allocator's error, or CopyToHost's.
absl::StatusOr<Tensor> CloneToHost(const TensorView& tensor, const HostAllocator& allocate = AllocateHost);

// Does the same for a tensor in device memory without waiting, like StartCopyToHost: the elements are there
// when done->back() returned, which is appended. One with gaps is waited for. REQUIRES: allocate returns
// pinned memory
absl::StatusOr<Tensor> StartCloneToHost(const TensorView& tensor, const HostAllocator& allocate,
                                        std::vector<CopyDone>* done);

// Returns the tensor itself if it is in host memory, else a copy.
absl::StatusOr<Tensor> ToHost(const Tensor& tensor);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_TENSOR_H_
