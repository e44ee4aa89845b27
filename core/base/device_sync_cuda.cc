#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "ott/core/base/device_sync.h"
#include "ott/core/base/forked_from_cuda.h"

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

absl::Status CheckFork() {
  if (!IsForkedFromCuda()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this process is the child of a fork, which cannot use the CUDA of its parent; start it by exec");
}

}  // namespace

absl::Status SynchronizeDevice() {
  if (const absl::Status status = CheckFork(); !status.ok()) return status;
  return ToStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

absl::Status SynchronizeStream(void* stream) {
  if (const absl::Status status = CheckFork(); !status.ok()) return status;
  return ToStatus(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
}

}  // namespace ott
