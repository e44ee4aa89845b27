// Waiting for the device, so that a host clock read afterwards tells when its work was done.

#ifndef OTT_CORE_BASE_DEVICE_SYNC_H_
#define OTT_CORE_BASE_DEVICE_SYNC_H_

#include "absl/status/status.h"

namespace ott {

// Waits for all work given to the current CUDA device. UNIMPLEMENTED in a build without CUDA,
// FAILED_PRECONDITION without a driver or a device, INTERNAL for an error of earlier work, each with CUDA's
// own words; FAILED_PRECONDITION in the child of a fork as well, where CUDA cannot be used.
absl::Status SynchronizeDevice();

// Waits for the work given to one stream, a cudaStream_t; null is the default stream. Errors as above.
absl::Status SynchronizeStream(void* stream);

}  // namespace ott

#endif  // OTT_CORE_BASE_DEVICE_SYNC_H_
