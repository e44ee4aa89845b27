// Measures where the time goes inside of a kernel.

#ifndef OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_CUH_
#define OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_CUH_

#include <cstdint>

#include "ott/core/kernel_timer/kernel_timer_view.h"

namespace ott {

// The clocks of a GPU, which no memory access passes.
struct KernelClock {
  static __device__ uint64_t Cycles() {
    uint64_t cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
  }
  static __device__ uint64_t Nanoseconds() {
    uint64_t nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
    return nanoseconds;
  }
  static __device__ uint32_t Sm() {
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
  }
};

// Times the named sections of a kernel, from its construction to its destruction. Lap(section) says that what
// ran since the last lap was that section. In each block (or warp, or in sampled blocks, as the view says)
// one thread reads its clock; sections of a whole block end with __syncthreads() before the lap.
// KernelTimer<Section, false> is empty, and leaves no instruction in the kernel.
//
// A lap is a clock read and one 8-byte store; the compiler may move arithmetic, but no memory access, across
// it.
//
//   enum class Section { kLoad, kLineSearch, kStore };
//
//   template <bool kTimed>
//   __global__ void Solve(float* x, ott::KernelTimerView times) {
//     ott::KernelTimer<Section, kTimed> timer(times);
//     Load(x);
//     timer.Lap(Section::kLoad);
//     while (!done) {
//       LineSearch();
//       timer.Lap(Section::kLineSearch);
//     }
//   }
template <typename Section, bool kTimed, typename Clock = KernelClock>
class KernelTimer;

template <typename Section, typename Clock>
class KernelTimer<Section, false, Clock> {
 public:
  __device__ explicit KernelTimer(const KernelTimerView&) {}
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

  __device__ void Lap(Section) {}
  __device__ void Skip() {}
};

template <typename Section, typename Clock>
class KernelTimer<Section, true, Clock> {
 public:
  // REQUIRES: all threads of the block, none of which has returned.
  __device__ explicit KernelTimer(const KernelTimerView& view) {
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const bool is_first = view.per_warp ? thread % 32 == 0 : thread == 0;
    if (view.memory == nullptr || !is_first || block % view.every_n_blocks != 0) return;
    uint32_t unit = block / view.every_n_blocks;
    if (view.per_warp) {
      unit = unit * ((blockDim.x * blockDim.y * blockDim.z + 31) / 32) + thread / 32;
    }
    if (unit >= view.num_units) {
      atomicAdd(reinterpret_cast<unsigned long long*>(view.memory), 1ull);
      return;
    }
    unit_ = reinterpret_cast<KernelTimerUnit*>(
        view.memory + 1 + static_cast<uint64_t>(unit) * (kKernelTimerUnitWords + view.laps_per_unit));
    max_laps_ = view.laps_per_unit;
    unit_->block = block;
    unit_->warp = thread / 32;
    unit_->sm = Clock::Sm();
    unit_->start_nanoseconds = Clock::Nanoseconds();
    unit_->start_cycles = Clock::Cycles();
  }
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

  __device__ ~KernelTimer() {
    if (unit_ == nullptr) return;
    unit_->end_cycles = Clock::Cycles();
    unit_->num_laps = num_laps_;
    unit_->end_nanoseconds = Clock::Nanoseconds();
  }

  // Below kNoKernelSection. Laps beyond the view's laps_per_unit are counted.
  __device__ void Lap(Section section) { Store(static_cast<uint32_t>(section)); }

  // Counts what ran since the last lap for no section.
  __device__ void Skip() { Store(kNoKernelSection); }

 private:
  // Threads that time nothing have room for no laps.
  __device__ void Store(uint32_t section) {
    const uint64_t cycles = Clock::Cycles();
    if (num_laps_ < max_laps_) {
      const uint32_t high = __byte_perm(static_cast<uint32_t>(cycles >> 32), section, 0x4210);
      reinterpret_cast<uint64_t*>(unit_ + 1)[num_laps_] =
          static_cast<uint64_t>(high) << 32 | static_cast<uint32_t>(cycles);
    }
    ++num_laps_;
  }

  KernelTimerUnit* unit_ = nullptr;
  uint32_t max_laps_ = 0;
  uint32_t num_laps_ = 0;
};

}  // namespace ott

#endif  // OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_CUH_
