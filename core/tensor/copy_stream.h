// A device's stream for copies beside the training's work.

#ifndef OTT_CORE_TENSOR_COPY_STREAM_H_
#define OTT_CORE_TENSOR_COPY_STREAM_H_

#include <cuda_runtime_api.h>

#include "absl/status/statusor.h"

namespace ott::internal {

// Waits for no other stream but by events. Made once for each device and never destroyed: at exit the driver
// may be gone. INTERNAL with CUDA's message where CUDA fails. Thread-safe. REQUIRES: the device is the
// current one
absl::StatusOr<cudaStream_t> CopyStream(int ordinal);

}  // namespace ott::internal

#endif  // OTT_CORE_TENSOR_COPY_STREAM_H_
