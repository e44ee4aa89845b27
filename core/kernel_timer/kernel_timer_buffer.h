// Device memory for the times of a kernel.

#ifndef OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_BUFFER_H_
#define OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_BUFFER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ott/core/kernel_timer/kernel_timer_view.h"
#include "ott/core/kernel_timer/kernel_times.h"

namespace ott {

// Gives a KernelTimer (kernel_timer.cuh) memory on the current device, and reads what a launch left there.
// Not thread-safe; a buffer serves one stream.
//
//   OTT_ASSIGN_OR_RETURN(auto buffer, ott::KernelTimerBuffer::Create(options));
//   Solve<true><<<blocks, threads, 0, stream>>>(x, buffer->view());
//   OTT_ASSIGN_OR_RETURN(const ott::KernelTimes times, buffer->Collect(stream));
//   report.Add(times);
class KernelTimerBuffer {
 public:
  struct Options {
    // At most so many blocks, or warps if per_warp, are timed. Those beyond are only counted.
    uint32_t num_units = 1024;
    uint32_t laps_per_unit = 64;
    // Only every so many blocks are timed, from block 0 on.
    uint32_t every_n_blocks = 1;
    bool per_warp = false;
  };

  // Creates a buffer. INVALID_ARGUMENT for no units or every 0 blocks; UNIMPLEMENTED in a build without CUDA;
  // else CUDA's error.
  static absl::StatusOr<std::unique_ptr<KernelTimerBuffer>> Create(const Options& options);

  KernelTimerBuffer(const KernelTimerBuffer&) = delete;
  KernelTimerBuffer& operator=(const KernelTimerBuffer&) = delete;
  ~KernelTimerBuffer();

  // Returns the view to be passed to one launch before each Collect().
  const KernelTimerView& view() const { return view_; }

  // Waits for the stream (a cudaStream_t; null: the default stream), and clears the buffer for the next
  // launch.
  absl::StatusOr<KernelTimes> Collect(void* stream = nullptr);

 private:
  explicit KernelTimerBuffer(const KernelTimerView& view) : view_(view) {}

  const KernelTimerView view_;
};

// Compares globaltimer of the current device with Unix time, with an error of some microseconds; takes less
// than a millisecond. Errors as above.
absl::StatusOr<GlobalTimerOffset> MeasureGlobalTimer();

}  // namespace ott

#endif  // OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_BUFFER_H_
