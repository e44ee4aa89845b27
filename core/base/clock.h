// The clock of everything that is measured: the CPU's time-stamp counter where it can be trusted, else
// steady_clock.

#ifndef OTT_CORE_BASE_CLOCK_H_
#define OTT_CORE_BASE_CLOCK_H_

#include <cstdint>

namespace ott {

// Ticks and what a tick is worth. A small value, cheap to copy and to read. Thread-safe.
//
//   const Clock& clock = Clock::Fastest();
//   const uint64_t start = clock.Ticks();
//   Work();
//   const uint64_t picoseconds = clock.ToPicoseconds(clock.Ticks() - start);
class Clock {
 public:
  // Nanoseconds from an arbitrary beginning, never decreasing.
  using Nanoseconds = uint64_t (*)();

  // The time-stamp counter, if the CPU says that it is invariant and the kernel has not found it unstable;
  // otherwise Steady(). The first call takes 20 ms to calibrate it against steady_clock.
  static const Clock& Fastest();

  // std::chrono::steady_clock.
  static Clock Steady();

  // Another source of time; what tests use.
  explicit Clock(Nanoseconds nanoseconds) : nanoseconds_(nanoseconds) {}

  uint64_t Ticks() const {
#if defined(__x86_64__)
    // __rdtsc(), whose header costs every file that includes this one 0.2 s of compiling.
    if (nanoseconds_ == nullptr) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (nanoseconds_ == nullptr) {
      uint64_t ticks;
      asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
      return ticks;
    }
#endif
    return nanoseconds_();
  }

  // Exact to 2^-32 of the tick's length. Durations up to 213 days fit.
  uint64_t ToPicoseconds(uint64_t ticks) const {
    __extension__ typedef unsigned __int128 Uint128;
    return static_cast<uint64_t>((static_cast<Uint128>(ticks) * picoseconds_per_tick_) >> 32);
  }

  bool uses_cycle_counter() const { return nanoseconds_ == nullptr; }

 private:
  // `picoseconds_per_tick` is of the cycle counter.
  explicit Clock(uint64_t picoseconds_per_tick) : picoseconds_per_tick_(picoseconds_per_tick) {}

  static Clock Calibrated();

  // Null: the cycle counter.
  Nanoseconds nanoseconds_ = nullptr;
  // With 32 binary digits after the point.
  uint64_t picoseconds_per_tick_ = uint64_t{1000} << 32;
};

}  // namespace ott

#endif  // OTT_CORE_BASE_CLOCK_H_
