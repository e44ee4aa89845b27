// CUDA's errors as a Status, and its current device for a scope.

#ifndef OTT_CORE_TENSOR_CUDA_STATUS_H_
#define OTT_CORE_TENSOR_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/forked_from_cuda.h"

namespace ott::internal {

inline absl::Status FromCuda(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(call, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error)));
}

inline absl::Status CheckFork() {
  if (!IsForkedFromCuda()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this process is the child of a fork, which cannot use the CUDA of its parent");
}

// An error in the child of a fork.
class CudaDeviceScope {
 public:
  explicit CudaDeviceScope(int ordinal) {
    status_ = CheckFork();
    if (status_.ok()) status_ = FromCuda(cudaGetDevice(&previous_), "cudaGetDevice");
    if (status_.ok()) status_ = FromCuda(cudaSetDevice(ordinal), "cudaSetDevice");
  }
  CudaDeviceScope(const CudaDeviceScope&) = delete;
  CudaDeviceScope& operator=(const CudaDeviceScope&) = delete;
  ~CudaDeviceScope() {
    if (status_.ok()) cudaSetDevice(previous_);
  }

  const absl::Status& status() const { return status_; }

 private:
  int previous_ = 0;
  absl::Status status_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_TENSOR_CUDA_STATUS_H_
