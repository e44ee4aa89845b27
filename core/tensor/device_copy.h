// Copies from device memory.

#ifndef OTT_CORE_TENSOR_DEVICE_COPY_H_
#define OTT_CORE_TENSOR_DEVICE_COPY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// Copies bytes from a CUDA device to host memory in stream order, and waits for them. UNIMPLEMENTED in a
// build without CUDA; INTERNAL with CUDA's message where CUDA fails.
absl::Status CopyToHost(const void* device_data, int64_t num_bytes, const Device& device, void* host_data);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_DEVICE_COPY_H_
