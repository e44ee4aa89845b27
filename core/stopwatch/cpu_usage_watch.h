// Watches how busy the CPUs are while a measurement runs.

#ifndef OTT_CORE_STOPWATCH_CPU_USAGE_WATCH_H_
#define OTT_CORE_STOPWATCH_CPU_USAGE_WATCH_H_

#include <mutex>

#include "absl/status/statusor.h"
#include "ott/core/stopwatch/cpu_usage.h"

namespace ott::internal {

// Thread-safe. Intervals may overlap: what counts is from the first that begins to the last that ends.
class CpuUsageWatch {
 public:
  explicit CpuUsageWatch(absl::StatusOr<CpuTimes> (*read_cpu_times)()) : read_cpu_times_(read_cpu_times) {}

  void Begin() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (num_running_++ == 0) start_ = read_cpu_times_();
  }

  void End() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--num_running_ > 0 || !start_.ok()) return;
    if (const absl::StatusOr<CpuTimes> end = read_cpu_times_(); end.ok()) usage_.Add(*start_, *end);
  }

  CpuUsage Read() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return usage_;
  }

  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    usage_ = CpuUsage();
  }

 private:
  absl::StatusOr<CpuTimes> (*const read_cpu_times_)();
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  int num_running_ = 0;
  absl::StatusOr<CpuTimes> start_ = CpuTimes();
  CpuUsage usage_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_CPU_USAGE_WATCH_H_
