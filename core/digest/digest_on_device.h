// The digest's leaves of a tensor in device memory, computed there.

#ifndef OTT_CORE_DIGEST_DIGEST_ON_DEVICE_H_
#define OTT_CORE_DIGEST_DIGEST_ON_DEVICE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/digest/digest.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott::internal {

// Runs in the order of the tensor's stream, and waits for it. UNIMPLEMENTED in a build without CUDA; INTERNAL
// with CUDA's message where CUDA fails. REQUIRES: the tensor is in device memory, and contiguous
absl::StatusOr<std::vector<Digest>> DigestLeavesOnDevice(const TensorView& tensor);

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_DIGEST_ON_DEVICE_H_
