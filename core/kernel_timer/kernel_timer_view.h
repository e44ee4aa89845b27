// The memory in which a kernel leaves its times (kernel_timer.cuh), as kernels and the host see it.

#ifndef OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_VIEW_H_
#define OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_VIEW_H_

#include <cstdint>

namespace ott {

// The times that a unit of a kernel, a block or a warp, stored. All zero: the unit never ran.
struct KernelTimerUnit {
  // globaltimer, in nanoseconds, and the SM's clock64.
  uint64_t start_nanoseconds;
  uint64_t end_nanoseconds;  // 0: the unit has not ended
  uint64_t start_cycles;
  uint64_t end_cycles;
  // Linear index in the grid.
  uint32_t block;
  // In the block.
  uint32_t warp;
  uint32_t sm;
  // Also those that did not fit.
  uint32_t num_laps;
};

// A lap is clock64 at its end, and in the highest byte the section.
inline constexpr int kKernelTimerSectionShift = 56;
// The section of laps that count for none.
inline constexpr uint32_t kNoKernelSection = 255;

// Passed to kernels by value; made by KernelTimerBuffer. Without memory (`memory` null) nothing is timed.
struct KernelTimerView {
  // A counter of units that did not fit, then for each unit a KernelTimerUnit and its laps.
  uint64_t* memory = nullptr;
  uint32_t num_units = 0;
  uint32_t laps_per_unit = 0;
  // Every how many blocks one is timed, from block 0 on. At least 1.
  uint32_t every_n_blocks = 1;
  // A unit is a warp instead of a block.
  bool per_warp = false;
};

// In 8-byte words.
inline constexpr uint64_t kKernelTimerUnitWords = sizeof(KernelTimerUnit) / sizeof(uint64_t);

}  // namespace ott

#endif  // OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_VIEW_H_
