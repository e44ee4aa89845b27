#include "ott/core/kernel_timer/kernel_timer_buffer.h"

namespace ott {
namespace {

absl::Status Unavailable() {
  return absl::UnimplementedError(
      "timers in kernels: built without CUDA; set CUDA_HOME to a CUDA toolkit and build again");
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelTimerBuffer>> KernelTimerBuffer::Create(const Options&) {
  return Unavailable();
}

KernelTimerBuffer::~KernelTimerBuffer() = default;

absl::StatusOr<KernelTimes> KernelTimerBuffer::Collect(void*) { return Unavailable(); }

absl::StatusOr<GlobalTimerOffset> MeasureGlobalTimer() { return Unavailable(); }

}  // namespace ott
