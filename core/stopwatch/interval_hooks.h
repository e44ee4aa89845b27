// The work of an interval besides reading the clock, if the stopwatch was told to do more.

#ifndef OTT_CORE_STOPWATCH_INTERVAL_HOOKS_H_
#define OTT_CORE_STOPWATCH_INTERVAL_HOOKS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/stopwatch/arrival_queue.h"
#include "core/stopwatch/cpu_usage_watch.h"
#include "core/stopwatch/device_intervals.h"
#include "core/stopwatch/work_tracker.h"
#include "ott/core/base/clock.h"
#include "ott/core/stopwatch/device_events.h"
#include "ott/core/stopwatch/interval_accumulator.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott::internal {

// One measurement's part.
struct MeasurementHooks {
  // REQUIRES: nobody else uses it.
  void Clear();

  // Bits, see IntervalHooks; 0 on the fast path.
  std::atomic<uint32_t> enabled{0};
  MeasurementWork work;
  // Null without device events.
  std::unique_ptr<IntervalAccumulator> on_device;
  // The arrivals of a collective measurement; empty for others.
  ArrivalQueue arrivals;
};

// An interval that runs.
struct IntervalHookState {
  // The hooks that its start had, as hooks may be added while it runs; 0 while it does not.
  uint32_t hooks = 0;
  DeviceEvents::Event device_start = nullptr;
  uint64_t nvtx_range = 0;
  IntervalWork work;
  // The result of ArrivalQueue::Add().
  uint64_t arrival_number = 0;
};

// An interval as its hooks see it.
struct HookedInterval {
  const std::string& name;
  MeasurementHooks& measurement;
  IntervalHookState& state;
  // The work of the thread that begins or ends it.
  ThreadWork& thread;
  // True for a scope, which ends on the thread where it began.
  bool nests;
  // True for one that begins inside of a scope.
  bool is_inside;
};

// Thread-safe, except where it says otherwise.
class IntervalHooks {
 public:
  explicit IntervalHooks(const Stopwatch::Environment& environment);

  // Not thread-safe, as all until Clear(). The error of what cannot be measured here.
  absl::Status Check(const Stopwatch::Options& options);
  // After Check(). clock: that of the intervals; outlives this.
  void Enable(const Stopwatch::Options& options, const Clock& clock);
  enum class Kind { kOther, kCollective, kObserver };
  void SetUp(MeasurementHooks& measurement, Kind kind, bool is_sampled) const;
  // Returns true once after SetUp(): as the measurement starts for the first time.
  static bool IsFirstStart(MeasurementHooks& measurement);
  static bool HasStarted(const MeasurementHooks& measurement);
  // From now on, CPU usage is that while `measurement` runs.
  static void WatchCpuUsage(MeasurementHooks& measurement);
  // Forgets all but what was set up for measurements.
  void Clear();

  // Around the two readings of the clock. counted: false in warm-up; iteration: how many have ended
  void BeforeStart(const HookedInterval& interval, bool counted, int64_t iteration);
  void BeforeEnd(const HookedInterval& interval);
  // Returns the picoseconds by which what runs around it waited for other ranks.
  uint64_t AfterEnd(const HookedInterval& interval);
  // Around one-time measurements.
  void SynchronizeIfAsked() const;

  // After WorkTracker::FinishIteration(), with its count and duration for each measurement.
  void FinishMeasurement(MeasurementHooks& measurement, uint64_t count, uint64_t duration) const;

  WorkTracker& work() { return work_; }
  const WorkTracker& work() const { return work_; }
  const CpuUsageWatch& cpu_usage() const { return cpu_usage_; }
  // Returns null without device events.
  DeviceIntervals* device() const { return device_.get(); }

 private:
  void Synchronize() const;

  const Stopwatch::Environment environment_;
  Stopwatch::DeviceSync device_sync_ = Stopwatch::DeviceSync::kNone;
  void* stream_ = nullptr;
  uint32_t hooks_of_all_ = 0;
  size_t arrivals_limit_ = 0;
  const Clock* clock_ = nullptr;
  WorkTracker work_;
  CpuUsageWatch cpu_usage_;
  std::unique_ptr<DeviceIntervals> device_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_INTERVAL_HOOKS_H_
