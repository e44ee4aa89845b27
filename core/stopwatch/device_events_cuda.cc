#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

#include "ott/core/base/device_sync.h"
#include "ott/core/base/forked_from_cuda.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/device_events.h"
#include "ott/core/tensor/cuda_status.h"

namespace ott {
namespace {

using internal::CudaDeviceScope;

// CUDA events of one stream, kept and used again.
class CudaEvents : public DeviceEvents {
 public:
  CudaEvents(int device, cudaStream_t stream) : device_(device), stream_(stream) {}

  // At the end of a process the driver may be gone; the answers then do not matter.
  ~CudaEvents() override {
    if (IsForkedFromCuda()) return;
    for (const cudaEvent_t event : free_) cudaEventDestroy(event);
  }

  Event Record() override {
    // Threads choose their devices: an event and the default stream are of the one that is current.
    const CudaDeviceScope scope(device_);
    if (!scope.status().ok()) return nullptr;
    const cudaEvent_t event = Take();
    if (event == nullptr) return nullptr;
    if (cudaEventRecord(event, stream_) == cudaSuccess) return event;
    GiveBack(event);
    return nullptr;
  }

  bool HasHappened(Event event) override {
    if (IsForkedFromCuda()) return true;
    // An error counts as happened: waiting would not end, and Between() tells.
    return cudaEventQuery(static_cast<cudaEvent_t>(event)) != cudaErrorNotReady;
  }

  std::optional<uint64_t> Between(Event start, Event end) override {
    if (IsForkedFromCuda()) return std::nullopt;
    float milliseconds = 0;
    if (cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(start), static_cast<cudaEvent_t>(end)) !=
        cudaSuccess) {
      return std::nullopt;
    }
    return milliseconds > 0 ? static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e9) : 0;
  }

  void GiveBack(Event event) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(static_cast<cudaEvent_t>(event));
  }

 private:
  cudaEvent_t Take() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        const cudaEvent_t event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    return cudaEventCreate(&event) == cudaSuccess ? event : nullptr;
  }

  const int device_;
  const cudaStream_t stream_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceEvents>> CreateDeviceEvents(void* stream) {
  // Finds a missing driver or device, and a stream that is not one, before the first measurement.
  OTT_RETURN_IF_ERROR(SynchronizeStream(stream));
  int device = 0;
  OTT_RETURN_IF_ERROR(internal::FromCuda(cudaGetDevice(&device), "cudaGetDevice"));
  return std::make_unique<CudaEvents>(device, static_cast<cudaStream_t>(stream));
}

}  // namespace ott
