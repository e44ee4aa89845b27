// Device memory that kernels write in the order of a tensor's stream, and that the host reads later.

#ifndef OTT_CORE_DIGEST_STREAM_SCRATCH_H_
#define OTT_CORE_DIGEST_STREAM_SCRATCH_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "ott/core/base/forked_from_cuda.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/copy_stream.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/core/tensor/device_copy.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott::internal {

// Errors are INTERNAL with CUDA's message.
class StreamScratch {
 public:
  explicit StreamScratch(const Device& device) : device_(device) {}
  StreamScratch(const StreamScratch&) = delete;
  StreamScratch& operator=(const StreamScratch&) = delete;
  ~StreamScratch() {
    if (memory_ == nullptr || IsForkedFromCuda()) return;
    const CudaDeviceScope scope(device_.ordinal);
    // The copy stream waits for the kernels that still write there.
    if (done_ == nullptr || cudaStreamWaitEvent(copy_stream_, done_, 0) != cudaSuccess) {
      cudaStreamSynchronize(stream());
    }
    cudaFreeAsync(memory_, copy_stream_);
    if (done_ != nullptr) cudaEventDestroy(done_);
  }

  // Allocates once, before the kernels. REQUIRES: the device is the current one
  absl::Status Allocate(int64_t num_bytes) {
    OTT_ASSIGN_OR_RETURN(copy_stream_, CopyStream(device_.ordinal));
    OTT_RETURN_IF_ERROR(FromCuda(cudaMallocAsync(&memory_, num_bytes, stream()), "cudaMallocAsync"));
    return FromCuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming | cudaEventBlockingSync),
                    "cudaEventCreateWithFlags");
  }
  // Says that all writes to it are in the stream by now. REQUIRES: the device is the current one
  absl::Status Finish() { return FromCuda(cudaEventRecord(done_, stream()), "cudaEventRecord"); }

  // Waits for what wrote there, and not for what the stream got after it. Thread-safe.
  absl::Status Read(int64_t offset, int64_t num_bytes, void* to) const {
    const CudaDeviceScope scope(device_.ordinal);
    OTT_RETURN_IF_ERROR(scope.status());
    OTT_RETURN_IF_ERROR(FromCuda(cudaStreamWaitEvent(copy_stream_, done_, 0), "cudaStreamWaitEvent"));
    return CopyToHost(static_cast<const char*>(memory_) + offset, num_bytes, OnCopyStream(), to);
  }

  template <typename T>
  T* As() const {
    return static_cast<T*>(memory_);
  }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream); }
  Device OnCopyStream() const {
    Device device = device_;
    device.stream = copy_stream_;
    return device;
  }

 private:
  const Device device_;
  cudaStream_t copy_stream_ = nullptr;
  void* memory_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_STREAM_SCRATCH_H_
