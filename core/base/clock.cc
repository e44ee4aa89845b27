#include "ott/core/base/clock.h"

#include <chrono>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ott {
namespace {

uint64_t SteadyNanoseconds() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// The kernel takes the counter off its list once it saw it run unevenly or differ between CPUs.
bool KernelTrustsCounter(const std::string& clock_source) {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  if (!file) return true;
  for (std::string name; file >> name;) {
    if (name == clock_source) return true;
  }
  return false;
}

bool CounterIsInvariant() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kInvariantTsc =
      1u << 8;  // CPUID 80000007H, EDX: Intel SDM 18.17.1, AMD APM 3 appendix E.4.6
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTsc) != 0 &&
         KernelTrustsCounter("tsc");
#elif defined(__aarch64__)
  return KernelTrustsCounter("arch_sys_counter");
#else
  return false;
#endif
}

struct SameMoment {
  uint64_t ticks;
  uint64_t nanoseconds;
};

// Both clocks read with as little between them as a few attempts allow.
SameMoment ReadBoth(const Clock& counter) {
  SameMoment best{};
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int attempt = 0; attempt < 100; ++attempt) {
    const uint64_t before = counter.Ticks();
    const uint64_t nanoseconds = SteadyNanoseconds();
    const uint64_t between = counter.Ticks() - before;
    if (between >= least) continue;
    least = between;
    best = {before + between / 2, nanoseconds};
  }
  return best;
}

}  // namespace

Clock Clock::Steady() { return Clock(&SteadyNanoseconds); }

Clock Clock::Calibrated() {
  if (!CounterIsInvariant()) return Steady();
  const Clock counter(uint64_t{0});
  const SameMoment start = ReadBoth(counter);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const SameMoment end = ReadBoth(counter);
  const uint64_t picoseconds = (end.nanoseconds - start.nanoseconds) * 1000;
  const uint64_t ticks = end.ticks - start.ticks;
  if (end.ticks <= start.ticks || ticks > picoseconds) return Steady();
  return Clock(static_cast<uint64_t>((static_cast<unsigned __int128>(picoseconds) << 32) / ticks));
}

const Clock& Clock::Fastest() {
  static const Clock clock = Calibrated();
  return clock;
}

}  // namespace ott
