#include <cuda_runtime_api.h>

#include <type_traits>

#include "ott/core/base/forked_from_cuda.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/copy_stream.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/core/tensor/device_copy.h"

namespace ott {
namespace {

using internal::CopyStream;
using internal::CudaDeviceScope;
using internal::FromCuda;

using Event = std::shared_ptr<std::remove_pointer_t<cudaEvent_t>>;

absl::StatusOr<Event> NewEvent() {
  cudaEvent_t event = nullptr;
  OTT_RETURN_IF_ERROR(
      FromCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
               "cudaEventCreateWithFlags"));
  return Event(event, [](cudaEvent_t e) {
    if (!IsForkedFromCuda()) cudaEventDestroy(e);
  });
}

// Makes all that is in one stream now come before what another one gets later.
absl::StatusOr<Event> Order(cudaStream_t before, cudaStream_t after) {
  OTT_ASSIGN_OR_RETURN(Event event, NewEvent());
  OTT_RETURN_IF_ERROR(FromCuda(cudaEventRecord(event.get(), before), "cudaEventRecord"));
  OTT_RETURN_IF_ERROR(FromCuda(cudaStreamWaitEvent(after, event.get(), 0), "cudaStreamWaitEvent"));
  return event;
}

}  // namespace

absl::Status CopyToHost(const void* device_data, int64_t num_bytes, const Device& device, void* host_data) {
  // The default stream is the current device's.
  const CudaDeviceScope scope(device.ordinal);
  OTT_RETURN_IF_ERROR(scope.status());
  const cudaStream_t stream = static_cast<cudaStream_t>(device.stream);
  OTT_RETURN_IF_ERROR(FromCuda(
      cudaMemcpyAsync(host_data, device_data, num_bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync"));
  return FromCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

absl::StatusOr<CopyDone> StartCopyToHost(const void* device_data, int64_t num_bytes, const Device& device,
                                         void* host_data) {
  const CudaDeviceScope scope(device.ordinal);
  OTT_RETURN_IF_ERROR(scope.status());
  const cudaStream_t stream = static_cast<cudaStream_t>(device.stream);
  OTT_ASSIGN_OR_RETURN(const cudaStream_t copy_stream, CopyStream(device.ordinal));
  OTT_RETURN_IF_ERROR(Order(stream, copy_stream).status());
  OTT_RETURN_IF_ERROR(
      FromCuda(cudaMemcpyAsync(host_data, device_data, num_bytes, cudaMemcpyDeviceToHost, copy_stream),
               "cudaMemcpyAsync"));
  absl::StatusOr<Event> copied = Order(copy_stream, stream);
  if (!copied.ok()) {
    // Nobody can wait for the copy any more, and the caller gives host_data away.
    cudaStreamSynchronize(copy_stream);
    return copied.status();
  }
  return CopyDone([copied = *std::move(copied), ordinal = device.ordinal] {
    const CudaDeviceScope scope(ordinal);
    OTT_RETURN_IF_ERROR(scope.status());
    return FromCuda(cudaEventSynchronize(copied.get()), "cudaEventSynchronize");
  });
}

absl::StatusOr<std::shared_ptr<void>> AllocatePinned(int64_t num_bytes) {
  OTT_RETURN_IF_ERROR(internal::CheckFork());
  void* memory = nullptr;
  OTT_RETURN_IF_ERROR(FromCuda(cudaHostAlloc(&memory, num_bytes, cudaHostAllocPortable), "cudaHostAlloc"));
  return std::shared_ptr<void>(memory, [](void* p) {
    if (!IsForkedFromCuda()) cudaFreeHost(p);
  });
}

}  // namespace ott
