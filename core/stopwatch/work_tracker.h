// Tracks which part of an iteration is the process's own work: the time that passes, less the collective
// measurements in it, less what others had the CPU for.

#ifndef OTT_CORE_STOPWATCH_WORK_TRACKER_H_
#define OTT_CORE_STOPWATCH_WORK_TRACKER_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "ott/core/base/clock.h"
#include "ott/core/stopwatch/own_time.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"
#include "ott/core/stopwatch/thread_times.h"

namespace ott::internal {

// Used by its thread alone.
struct ThreadWork {
  // The thread's times when they were last read, and when that was.
  std::optional<ThreadTimes> times;
  std::optional<uint64_t> read_at;
  uint64_t first_read_at = 0;
  // Picoseconds that it could have read them more often until then; negative if it read them too often.
  int64_t saved = 0;
  // Collective scopes that run.
  int num_collectives = 0;
  // When the last collective measurement ended, and the thread's times then: of those that overlap, what is
  // before that counts already.
  uint64_t last_collective_end = 0;
  ThreadTimes at_collective_end;
  // In collective measurements of this iteration.
  ThreadTimes in_collectives;
  // At the end of the last iteration, and when the thread last came to a collective measurement.
  std::optional<ThreadTimes> at_iteration;
  std::optional<ThreadTimes> at_arrival;
  // The part of the time without a CPU since at_arrival that cannot have made the thread late: it waited
  // anyway.
  uint64_t taken_in_vain = 0;
  // Nanoseconds since at_arrival inside of the observer, and those of them without a CPU.
  uint64_t observed = 0;
  uint64_t taken_in_observer = 0;
};

// One measurement's part in the iteration that runs.
struct MeasurementWork {
  // Picoseconds in collective measurements inside of it, and nanoseconds without a CPU.
  std::atomic<uint64_t> waiting{0};
  std::atomic<uint64_t> taken{0};
  // True if it ever ran inside of another.
  std::atomic<bool> is_inside{false};
  // Used by whoever ends iterations.
  WorkTimeRecorder own;
};

// An interval that runs.
struct IntervalWork {
  // The thread where it began; null for one that counts with another around it.
  const ThreadWork* thread = nullptr;
  // The thread's times at the start, and how long it had been kept from running inside of collective
  // measurements.
  std::optional<ThreadTimes> times;
  uint64_t taken_in_collectives = 0;
  uint64_t start = 0;
};

// Thread-safe, except where it says otherwise. `thread` is the caller's.
class WorkTracker {
 public:
  explicit WorkTracker(const Stopwatch::Environment& environment);

  // clock: that of all ticks; outlives this.
  void Enable(const Clock& clock, bool watch_cpu);
  // REQUIRES: no other thread uses this.
  void Clear();

  // Begins a collective measurement. nests: it is a scope, and ends on the thread where it began.
  void BeginCollective(ThreadWork& thread, IntervalWork& interval, bool nests);
  // Returns the picoseconds by which what runs around it waited; 0 if that counts with another.
  uint64_t EndCollective(ThreadWork& thread, const IntervalWork& interval, bool nests, bool is_observer,
                         uint64_t now);
  // Fills Arrival::taken, taken_in_vain and observed, after BeginCollective().
  static void SetTaken(ThreadWork& thread, const IntervalWork& interval, StopwatchArrivals::Arrival* arrival);

  // Begins an interval that is watched. is_inside: inside of another.
  void BeginWatching(ThreadWork& thread, IntervalWork& interval, MeasurementWork& measurement,
                     bool is_inside) const;
  void EndWatching(ThreadWork& thread, const IntervalWork& interval, MeasurementWork& measurement) const;

  // Begins the first iteration. This and what follows is called by one thread at a time.
  void StartIteration(ThreadWork& thread);
  // Ends an iteration and begins the next. duration: picoseconds
  void FinishIteration(ThreadWork& thread, uint64_t duration);
  // After FinishIteration(), for each measurement. count: its intervals, 0 for a collective one; duration:
  // picoseconds of all of them. Returns whether the next are to be watched.
  bool FinishMeasurement(MeasurementWork& measurement, uint64_t count, uint64_t duration,
                         bool is_watched) const;
  void CloseWindow() { work_.CloseWindow(); }
  StopwatchSnapshot::OwnWork Read() const;

 private:
  // Returns the times of the calling thread, read again if they are old; nullopt if they are not watched.
  std::optional<ThreadTimes> ReadTimes(ThreadWork& thread) const;
  void StartIteration(ThreadWork& thread, const std::optional<ThreadTimes>& times);
  void CountCpu();

  const Stopwatch::Environment environment_;
  const Clock* clock_ = nullptr;
  bool watch_cpu_ = false;

  std::mutex mutex_;
  // Guarded by mutex_: collective measurements that run on any thread, since when, and how long any did in
  // this iteration.
  int num_collectives_ = 0;
  uint64_t waiting_since_ = 0;
  uint64_t waiting_ = 0;

  WorkTimeRecorder work_;
  StopwatchSnapshot::OwnWork own_work_;
  // True if others had the CPU for so much of the last iteration that measurements that were not watched say
  // nothing.
  bool is_disturbed_ = false;
  // True if the last iteration was shorter than what a read may cost.
  std::atomic<bool> has_short_iterations_{false};
  // The thread that ended the last iteration.
  const ThreadWork* finishing_thread_ = nullptr;
  // The process's CPU time when CountCpu() was called last, and the iterations since then. Picoseconds, but
  // for in_collectives, which is nanoseconds on a CPU.
  uint64_t process_cpu_time_ = 0;
  struct {
    int64_t num_iters = 0;
    uint64_t duration = 0, work = 0, taken = 0, in_collectives = 0;
  } since_count_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_WORK_TRACKER_H_
