// Reads how busy all CPUs of the machine are, and how much of them this process uses.

#ifndef OTT_CORE_STOPWATCH_CPU_USAGE_H_
#define OTT_CORE_STOPWATCH_CPU_USAGE_H_

#include <string_view>

#include "absl/status/statusor.h"

namespace ott {

// Times since some beginning, in seconds; differences have a meaning.
struct CpuTimes {
  // Summed over all CPUs. busy is total without idle and waiting for I/O, as psutil.cpu_percent counts it;
  // the time of guests, which Linux counts twice, counts once.
  double all_busy = 0;
  double all_total = 0;
  // CPU time of this process, summed over its threads.
  double process_user = 0;
  double process_system = 0;
  double wall = 0;
};

// Reads /proc/stat, whose resolution is usually 10 ms, and getrusage.
absl::StatusOr<CpuTimes> ReadCpuTimes();

// all_busy and all_total from the contents of /proc/stat (proc(5)). INVALID_ARGUMENT if its first line is not
// the sum over all CPUs. ticks_per_second: sysconf(_SC_CLK_TCK)
absl::StatusOr<CpuTimes> ParseProcStat(std::string_view contents, double ticks_per_second);

// The usage over a number of intervals: sums of differences, so that long ones weigh more.
//
// Not synchronised.
class CpuUsage {
 public:
  void Add(const CpuTimes& start, const CpuTimes& end);

  // Returns percent of all CPUs together; 0 before anything was added.
  double all_percent() const;
  // Returns percent of one CPU, so a process with several threads may have more than 100.
  double process_user_percent() const;
  double process_system_percent() const;
  // Seconds that were watched.
  double duration() const { return sums_.wall; }

 private:
  CpuTimes sums_;
};

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_CPU_USAGE_H_
