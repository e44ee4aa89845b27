// Intervals on a device, each between two events of it.

#ifndef OTT_CORE_STOPWATCH_DEVICE_INTERVALS_H_
#define OTT_CORE_STOPWATCH_DEVICE_INTERVALS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "ott/core/stopwatch/device_events.h"
#include "ott/core/stopwatch/interval_accumulator.h"

namespace ott::internal {

// Thread-safe, except for the destructor.
class DeviceIntervals {
 public:
  explicit DeviceIntervals(std::unique_ptr<DeviceEvents> events);
  DeviceIntervals(const DeviceIntervals&) = delete;
  DeviceIntervals& operator=(const DeviceIntervals&) = delete;
  // Gives back the events of what is pending.
  ~DeviceIntervals();

  // Returns null if the device refused; the interval is then not measured.
  DeviceEvents::Event Begin() { return events_->Record(); }

  // Adds the interval to `durations` in the first call of Read() after it has happened. `durations` outlives
  // this. start: of Begin().
  void End(DeviceEvents::Event start, IntervalAccumulator* durations);

  void Read();

  // Returns the number of intervals that have ended on the host and were not read yet.
  int64_t num_pending() const;

 private:
  struct Pending {
    DeviceEvents::Event start;
    DeviceEvents::Event end;
    IntervalAccumulator* durations;
  };

  // Removes the oldest. REQUIRES: mutex_ is held.
  void Pop();

  const std::unique_ptr<DeviceEvents> events_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, oldest first.
  std::deque<Pending> pending_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_DEVICE_INTERVALS_H_
