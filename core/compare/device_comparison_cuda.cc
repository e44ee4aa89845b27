#include <cuda_runtime_api.h>

#include "ott/core/base/status_macros.h"
#include "ott/core/compare/device_comparison.h"
#include "ott/core/compare/device_comparison_kernel.h"
#include "ott/core/tensor/copy_stream.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/core/tensor/device_copy.h"

namespace ott::internal {
namespace {

bool IsAligned(const TensorView& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data()) % static_cast<uintptr_t>(SizeOf(tensor.dtype())) == 0;
}

// The stream waits for what the tensor's own has now.
absl::Status WaitFor(const TensorView& tensor, cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  OTT_RETURN_IF_ERROR(
      FromCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags"));
  absl::Status status =
      FromCuda(cudaEventRecord(event, static_cast<cudaStream_t>(tensor.device().stream)), "cudaEventRecord");
  if (status.ok()) status = FromCuda(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
  cudaEventDestroy(event);
  return status;
}

}  // namespace

bool CanCompareOnDevice(const TensorView& reference, const TensorView& current) {
  for (const TensorView* tensor : {&reference, &current}) {
    if (tensor->device().kind != Device::Kind::kCuda || !tensor->is_contiguous() || !IsAligned(*tensor) ||
        tensor->num_elements() == 0) {
      return false;
    }
  }
  return reference.device().ordinal == current.device().ordinal;
}

absl::StatusOr<std::vector<DeviceBlock>> CompareOnDevice(const TensorView& reference,
                                                         const TensorView& current) {
  const CudaDeviceScope scope(reference.device().ordinal);
  OTT_RETURN_IF_ERROR(scope.status());
  OTT_ASSIGN_OR_RETURN(const cudaStream_t stream, CopyStream(reference.device().ordinal));
  OTT_RETURN_IF_ERROR(WaitFor(reference, stream));
  OTT_RETURN_IF_ERROR(WaitFor(current, stream));
  const int64_t size = reference.num_elements();
  std::vector<DeviceBlock> blocks((size + kDeviceBlockElements - 1) / kDeviceBlockElements);
  const auto num_bytes = static_cast<int64_t>(blocks.size() * sizeof(DeviceBlock));
  static_assert(sizeof(DeviceBlock) == 2 * sizeof(uint64_t));
  void* memory = nullptr;
  OTT_RETURN_IF_ERROR(FromCuda(cudaMallocAsync(&memory, num_bytes, stream), "cudaMallocAsync"));
  const RealElements elements = RealElementsOf(reference.dtype());
  absl::Status status = FromCuda(
      LaunchCompareBlocks(elements.element, reference.data(), current.data(), size * elements.number,
                          kDeviceBlockElements * elements.number, static_cast<uint64_t*>(memory), stream),
      "the comparison's kernel");
  Device device = reference.device();
  device.stream = stream;
  if (status.ok()) status = CopyToHost(memory, num_bytes, device, blocks.data());
  cudaFreeAsync(memory, stream);
  OTT_RETURN_IF_ERROR(status);
  return blocks;
}

}  // namespace ott::internal
