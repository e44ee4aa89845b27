// Summarizes the times of a kernel: where it spends them, and how evenly.

#ifndef OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_REPORT_H_
#define OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_REPORT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/kernel_timer/kernel_timer_stats.pb.h"
#include "ott/core/kernel_timer/kernel_times.h"

namespace ott {

// Gathers the launches of one kernel. Not thread-safe.
//
//   KernelTimerReport report("solve", {"load", "line search", "store"});
//   for (each launch) report.Add(times);
//   std::fputs(report.Table().c_str(), stdout);
class KernelTimerReport {
 public:
  // Makes a report. sections: names in the order of the enumeration.
  KernelTimerReport(std::string kernel, std::vector<std::string> sections)
      : kernel_(std::move(kernel)), section_names_(std::move(sections)) {}

  void Add(const KernelTimes& launch);

  KernelTimerStats Stats() const;
  // Returns a row for each section, and what did not fit.
  std::string Table() const;
  // Returns Stats() in one line.
  std::string Json() const;

 private:
  // In cycles.
  struct Section {
    uint64_t total = 0;
    int64_t laps = 0;
    // A sample for each unit.
    std::vector<uint64_t> per_unit;
    std::map<uint32_t, uint64_t> per_sm;
    struct Iteration {
      uint64_t total = 0;
      int64_t units = 0;
    };
    std::vector<Iteration> per_iteration;
  };

  void AddUnit(const KernelTimes::Unit& unit);
  KernelSectionStats StatsOf(const Section& section, double seconds_per_cycle) const;

  const std::string kernel_;
  const std::vector<std::string> section_names_;
  // By number; kNoKernelSection has what is part of no section.
  std::map<uint32_t, Section> sections_;
  int64_t num_launches_ = 0;
  int64_t num_units_ = 0;
  int64_t num_units_unfinished_ = 0;
  uint64_t num_units_lost_ = 0;
  uint64_t num_laps_lost_ = 0;
  uint64_t num_invalid_ = 0;
  uint64_t total_cycles_ = 0;
  // The cycles of those units that ended.
  uint64_t timed_cycles_ = 0;
  uint64_t timed_nanoseconds_ = 0;
  // The SMs that ran any unit.
  std::set<uint32_t> sms_;
};

}  // namespace ott

#endif  // OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_REPORT_H_
