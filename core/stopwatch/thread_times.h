// Reads how long a thread had a CPU, and how long it could have run but had none.

#ifndef OTT_CORE_STOPWATCH_THREAD_TIMES_H_
#define OTT_CORE_STOPWATCH_THREAD_TIMES_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace ott {

// Nanoseconds since the thread began. For the rest of that time it slept, or waited for something else than a
// CPU.
struct ThreadTimes {
  uint64_t on_cpu = 0;
  // Waiting for a CPU that others had.
  uint64_t taken = 0;

  ThreadTimes operator-(const ThreadTimes& other) const {
    return {on_cpu - other.on_cpu, taken - other.taken};
  }
};

// Returns the times of the calling thread; reading them takes half a microsecond. nullopt if the kernel does
// not tell. Time that a hypervisor gave to other machines counts as on_cpu.
std::optional<ThreadTimes> ReadThreadTimes();

// Returns how long all threads of this process together had a CPU, in nanoseconds.
uint64_t ReadProcessCpuTime();

// ThreadTimes::taken, from the contents of /proc/thread-self/schedstat (Linux,
// Documentation/scheduler/sched-stats.rst); nullopt if they are malformed. The time on a CPU in there is of
// the last time that the scheduler looked, milliseconds ago.
std::optional<uint64_t> ParseSchedstat(std::string_view contents);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_THREAD_TIMES_H_
