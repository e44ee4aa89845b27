// Processes of this machine, to tell whether one that recorded is still there.

#ifndef OTT_CORE_FLIGHT_PROCESS_H_
#define OTT_CORE_FLIGHT_PROCESS_H_

#include <cstdint>
#include <string>

namespace ott {

struct ProcessStatus {
  // The state as /proc/PID/stat has it: 'R' runs, 'T' is stopped, 'Z' has ended; 0: there is no such process.
  char state = 0;
  // In clock ticks since boot: numbers of processes are used again.
  uint64_t started = 0;
};

ProcessStatus ReadProcess(int64_t process);

// Returns a text that is equal in processes that have the same numbers of processes: on one machine since it
// was booted, and in one container. "" if it is not known.
std::string ThisMachine();

}  // namespace ott

#endif  // OTT_CORE_FLIGHT_PROCESS_H_
