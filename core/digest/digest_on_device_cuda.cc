#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/digest/digest_kernel.h"
#include "ott/core/digest/digest_on_device.h"
#include "ott/core/tensor/cuda_status.h"

namespace ott::internal {

absl::StatusOr<std::vector<Digest>> DigestLeavesOnDevice(const TensorView& tensor) {
  const int64_t num_bytes = tensor.num_bytes();
  std::vector<Digest> leaves((num_bytes + kDigestBlockBytes - 1) / kDigestBlockBytes);
  if (leaves.empty()) return leaves;
  const CudaDeviceScope device(tensor.device().ordinal);
  OTT_RETURN_IF_ERROR(device.status());
  const cudaStream_t stream = static_cast<cudaStream_t>(tensor.device().stream);
  const size_t leaf_bytes = leaves.size() * sizeof(Digest);
  void* device_leaves = nullptr;
  OTT_RETURN_IF_ERROR(FromCuda(cudaMallocAsync(&device_leaves, leaf_bytes, stream), "cudaMallocAsync"));
  const auto release = absl::MakeCleanup([&] { cudaFreeAsync(device_leaves, stream); });
  OTT_RETURN_IF_ERROR(FromCuda(LaunchDigestKernel(tensor.data(), num_bytes, kDigestBlockBytes,
                                                  static_cast<uint64_t*>(device_leaves), stream),
                               "the digest's kernel"));
  static_assert(sizeof(Digest) == 2 * sizeof(uint64_t));
  OTT_RETURN_IF_ERROR(
      FromCuda(cudaMemcpyAsync(leaves.data(), device_leaves, leaf_bytes, cudaMemcpyDeviceToHost, stream),
               "cudaMemcpyAsync"));
  OTT_RETURN_IF_ERROR(FromCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize"));
  return leaves;
}

}  // namespace ott::internal
