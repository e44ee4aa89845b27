#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/kernel_timer/global_timer_kernel.h"
#include "ott/core/kernel_timer/kernel_timer_buffer.h"

namespace ott {
namespace {

absl::Status ToStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat("kernel timer: ", call, ": ", cudaGetErrorString(error), " (",
                                           cudaGetErrorName(error), ")");
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    return absl::FailedPreconditionError(
        absl::StrCat(message, "; run on a machine with a GPU and its driver"));
  }
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

int64_t UnixNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelTimerBuffer>> KernelTimerBuffer::Create(const Options& options) {
  if (options.num_units == 0 || options.every_n_blocks == 0) {
    return absl::InvalidArgumentError(absl::StrCat("kernel timer: num_units is ", options.num_units,
                                                   " and every_n_blocks is ", options.every_n_blocks,
                                                   "; both must be at least 1"));
  }
  KernelTimerView view;
  view.num_units = options.num_units;
  view.laps_per_unit = options.laps_per_unit;
  view.every_n_blocks = options.every_n_blocks;
  view.per_warp = options.per_warp;
  const size_t num_bytes = KernelTimerMemorySize(view) * sizeof(uint64_t);
  OTT_RETURN_IF_ERROR(ToStatus(cudaMalloc(reinterpret_cast<void**>(&view.memory), num_bytes), "cudaMalloc"));
  std::unique_ptr<KernelTimerBuffer> buffer(new KernelTimerBuffer(view));
  OTT_RETURN_IF_ERROR(ToStatus(cudaMemset(view.memory, 0, num_bytes), "cudaMemset"));
  // The kernel's stream need not wait for the default one.
  OTT_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize"));
  return buffer;
}

// At the end of a process the driver may be gone; the answer then does not matter.
KernelTimerBuffer::~KernelTimerBuffer() { cudaFree(view_.memory); }

absl::StatusOr<KernelTimes> KernelTimerBuffer::Collect(void* stream) {
  const auto native = static_cast<cudaStream_t>(stream);
  std::vector<uint64_t> memory(KernelTimerMemorySize(view_));
  const size_t num_bytes = memory.size() * sizeof(uint64_t);
  OTT_RETURN_IF_ERROR(
      ToStatus(cudaMemcpyAsync(memory.data(), view_.memory, num_bytes, cudaMemcpyDeviceToHost, native),
               "cudaMemcpyAsync"));
  OTT_RETURN_IF_ERROR(ToStatus(cudaMemsetAsync(view_.memory, 0, num_bytes, native), "cudaMemsetAsync"));
  OTT_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(native), "cudaStreamSynchronize"));
  return ReadKernelTimes(memory, view_);
}

absl::StatusOr<GlobalTimerOffset> MeasureGlobalTimer() {
  uint64_t* device_nanoseconds = nullptr;
  OTT_RETURN_IF_ERROR(
      ToStatus(cudaMalloc(reinterpret_cast<void**>(&device_nanoseconds), sizeof(uint64_t)), "cudaMalloc"));
  const auto free_memory = absl::MakeCleanup([device_nanoseconds] { cudaFree(device_nanoseconds); });
  // The shortest round trip tells most; the first ones load the kernel.
  constexpr int kRoundTrips = 20;
  // globaltimer shows its last step, which is up to this long ago.
  constexpr int64_t kStepNanoseconds = 1024;
  GlobalTimerOffset best;
  best.error_nanoseconds = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kRoundTrips; ++i) {
    const int64_t before = UnixNanoseconds();
    OTT_RETURN_IF_ERROR(ToStatus(ReadGlobalTimer(device_nanoseconds), "launching a kernel"));
    OTT_RETURN_IF_ERROR(ToStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
    const int64_t after = UnixNanoseconds();
    uint64_t shown = 0;
    OTT_RETURN_IF_ERROR(ToStatus(
        cudaMemcpy(&shown, device_nanoseconds, sizeof(shown), cudaMemcpyDeviceToHost), "cudaMemcpy"));
    const int64_t error = (after - before) / 2 + kStepNanoseconds;
    if (error < best.error_nanoseconds) {
      best = {before + (after - before) / 2 - static_cast<int64_t>(shown), error};
    }
  }
  return best;
}

}  // namespace ott
