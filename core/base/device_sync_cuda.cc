#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "ott/core/base/device_sync.h"

namespace ott {
namespace {

absl::Status ToStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string message =
      absl::StrCat(call, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    return absl::FailedPreconditionError(absl::StrCat(
        message, "; run on a machine with a GPU and its driver, or switch device synchronisation off"));
  }
  return absl::InternalError(message);
}

}  // namespace

absl::Status SynchronizeDevice() { return ToStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

absl::Status SynchronizeStream(void* stream) {
  return ToStatus(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
}

}  // namespace ott
