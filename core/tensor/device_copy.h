// Copies from device memory.

#ifndef OTT_CORE_TENSOR_DEVICE_COPY_H_
#define OTT_CORE_TENSOR_DEVICE_COPY_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// All of these: UNIMPLEMENTED in a build without CUDA; INTERNAL with CUDA's message where CUDA fails.

// Copies bytes from a CUDA device to host memory in stream order, and waits for them.
absl::Status CopyToHost(const void* device_data, int64_t num_bytes, const Device& device, void* host_data);

// Waits until a copy is done, and returns its error. May be called from any thread, and again.
using CopyDone = std::function<absl::Status()>;

// Starts such a copy and returns at once: on a stream of our own, behind the work that device.stream has now,
// and before the work that it gets later, so that the tensor may be overwritten in stream order. REQUIRES:
// host_data is pinned, and lives until the copy is done
absl::StatusOr<CopyDone> StartCopyToHost(const void* device_data, int64_t num_bytes, const Device& device,
                                         void* host_data);

// Allocates host memory that a device copies into without the host's help.
absl::StatusOr<std::shared_ptr<void>> AllocatePinned(int64_t num_bytes);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_DEVICE_COPY_H_
