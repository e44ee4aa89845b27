#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "ott/core/tensor/device_copy.h"

namespace ott {
namespace {

absl::Status FromCuda(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(call, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error)));
}

}  // namespace

absl::Status CopyToHost(const void* device_data, int64_t num_bytes, const Device& device, void* host_data) {
  // Unified addressing: the pointer says which device, whichever is current.
  const cudaStream_t stream = static_cast<cudaStream_t>(device.stream);
  const absl::Status copied = FromCuda(
      cudaMemcpyAsync(host_data, device_data, num_bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  if (!copied.ok()) return copied;
  return FromCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

}  // namespace ott
