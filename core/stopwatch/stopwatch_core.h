// The implementation of a Stopwatch that is on: its tables of threads and measurements, and the hot paths.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_CORE_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_CORE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/per_thread.h"
#include "ott/core/base/place.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/stopwatch/cpu_usage.h"
#include "ott/core/stopwatch/device_events.h"
#include "ott/core/stopwatch/interval_accumulator.h"
#include "ott/core/stopwatch/iteration_series.h"
#include "ott/core/stopwatch/own_time.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/thread_times.h"

namespace ott::internal {

// A Place that other threads may read while it is written.
class SharedPlace {
 public:
  void Store(Place place) {
    file_.store(place.file, std::memory_order_relaxed);
    line_.store(place.line, std::memory_order_relaxed);
  }
  Place Load() const {
    return {file_.load(std::memory_order_relaxed), line_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<const char*> file_{""};
  std::atomic<int> line_{0};
};

// Says what an interval does besides reading the clock, as bits; none on the fast path.
enum StopwatchHooks : uint32_t {
  kSynchronizeHook = 1,
  kEventsHook = 2,
  kNvtxHook = 4,
  kCpuUsageHook = 8,
  kArrivalHook = 16,
  kCollectiveHook = 32,
  kWatchHook = 64,
};

struct StopwatchThread;

// State of the hooks of a running interval.
struct StopwatchHookState {
  // The hooks that its start had, as hooks may be added while it runs; 0 while it does not.
  uint32_t hooks = 0;
  DeviceEvents::Event device_start = nullptr;
  uint64_t nvtx_range = 0;
  // For collective measurements and those that are watched: the thread where it began, what it had been
  // doing until then, and what of that it was kept from inside of collective measurements.
  const StopwatchThread* thread = nullptr;
  std::optional<ThreadTimes> times;
  uint64_t taken_in_collectives = 0;
  uint64_t collective_start = 0;
  // When the interval's arrival was, and how many the measurement had before it.
  int64_t arrival = 0;
  uint64_t arrival_number = 0;
};

// All there is of one name, for all threads.
struct StopwatchMeasurement {
  enum State : uint32_t { kIdle, kChanging, kRunning };

  StopwatchMeasurement(StopwatchCore* core, std::string_view name, size_t index)
      : core(core), name(name), index(index) {}

  StopwatchCore* const core;
  const std::string name;
  // In the order of first use.
  const size_t index;
  std::atomic<uint32_t> hooks{0};
  // Null where there is no flight recorder, or no place in it.
  std::atomic<FlightRecorder::Measurement*> flight{nullptr};

  // Start() and End(): kChanging gives whoever set it the fields below.
  std::atomic<uint32_t> state{kIdle};
  std::atomic<int> thread{0};
  SharedPlace place;
  uint64_t start = 0;
  bool counted = false;
  StopwatchHookState hook_state;

  // Counts of the iteration that runs: picoseconds in collective measurements inside of it, nanoseconds
  // without a CPU.
  std::atomic<uint64_t> waiting{0};
  std::atomic<uint64_t> taken{0};
  // True if it ever ran inside of another.
  std::atomic<bool> is_inside{false};

  // Guarded by the core's mutex.
  bool collective = false;
  OwnTimeRecorder own;
  IntervalAccumulator per_iteration;
  IterationSeries series;
  // Over all threads, now and at the last FinishIter().
  uint64_t count = 0;
  Uint128 total = 0;
  uint64_t finished_count = 0;
  Uint128 finished_total = 0;

  // Guarded by the mutex of device events; null without them.
  std::unique_ptr<IntervalAccumulator> on_device;

  // Guarded by the mutex of arrivals; of collective measurements only.
  std::optional<std::deque<StopwatchArrivals::Arrival>> arrivals;
  // That there were, of which `arrivals` are the last.
  uint64_t num_arrivals = 0;
};

// One measurement on one thread inside one other measurement.
struct StopwatchRecord {
  explicit StopwatchRecord(StopwatchMeasurement* measurement, StopwatchRecord* parent)
      : measurement(measurement), parent(parent) {}

  // Null for the root of a thread.
  StopwatchMeasurement* const measurement;
  StopwatchRecord* const parent;
  IntervalAccumulator intervals;
  // A hash table by index of the measurement, a power of two large and never full. Used by the record's
  // thread alone.
  std::vector<StopwatchRecord*> children = std::vector<StopwatchRecord*>(4);
  size_t num_children = 0;
};

// A scope that runs. Frames of a thread are a chain that is kept and used again.
struct StopwatchFrame {
  StopwatchCore* core = nullptr;
  StopwatchThread* thread = nullptr;
  StopwatchFrame* outer = nullptr;
  std::unique_ptr<StopwatchFrame> inner;
  std::atomic<StopwatchRecord*> record{nullptr};
  SharedPlace place;
  uint64_t start = 0;
  // Picoseconds of the scopes inside that have ended.
  uint64_t inner_duration = 0;
  bool counted = false;
  StopwatchHookState hook_state;
};

// State that one thread at a time writes, and all may read.
struct StopwatchThread {
  StopwatchThread();

  std::atomic<int> id{0};
  StopwatchFrame outermost;
  std::atomic<StopwatchFrame*> innermost{&outermost};
  StopwatchRecord root{nullptr, nullptr};
  // By name; used by the thread alone.
  struct Known {
    size_t hash;
    StopwatchMeasurement* measurement;
  };
  std::vector<Known> known = std::vector<Known>(64);
  size_t num_known = 0;
  // Used by the thread alone: its times when they were last read, and when that was.
  std::optional<ThreadTimes> times;
  std::optional<uint64_t> read_at;
  // Used by the thread alone: collective scopes that run, and its times in those of this iteration, at the
  // end of the last iteration, and when it last came to a collective measurement.
  int num_collectives = 0;
  // When the last one ended, and its times then: of those that overlap, what is before that counts already.
  uint64_t last_collective_end = 0;
  ThreadTimes at_collective_end;
  ThreadTimes in_collectives;
  std::optional<ThreadTimes> at_iteration;
  std::optional<ThreadTimes> at_arrival;
  // The part of the time without a CPU since then that cannot have made it late: it waited anyway.
  uint64_t taken_in_vain = 0;

  // Guarded by the mutex of the list of threads.
  std::vector<std::unique_ptr<StopwatchRecord>> records;
};

// Thread-safe. Hot paths take no lock and allocate nothing, except where a thread meets a name for the first
// time.
class StopwatchCore {
 public:
  // The process's: the clock is chosen by Enable().
  StopwatchCore();
  explicit StopwatchCore(const Stopwatch::Environment& environment);

  absl::Status Enable(const Stopwatch::Options& options, Place place);
  bool enabled() const { return enabled_.load(std::memory_order_acquire); }
  static bool observed() { return false; }
  void Disable();
  void RecordInto(EventRecorder* recorder);
  void RecordFlight(FlightRecorder* recorder);
  void SetOperation(std::string_view name, const FlightOperation& operation);
  const Clock& clock() const { return clock_; }

  StopwatchMeasurement& Find(Stopwatch::Measurement& measurement);
  StopwatchMeasurement& Find(std::string_view name);

  void Start(StopwatchMeasurement& measurement, Place place);
  void End(StopwatchMeasurement& measurement, Place place);
  StopwatchFrame* BeginScope(StopwatchMeasurement& measurement, Place place);
  void EndScope(StopwatchFrame* frame);

  void StartOneTime(std::string_view name, Place place);
  void EndOneTime(std::string_view name, Place place);
  // Returns whether it is time to print.
  bool FinishIter(Place place);
  absl::Status SetCpuUsageMeasurement(std::string_view name);
  StopwatchSnapshot Snapshot() const;
  std::vector<StopwatchArrivals> TakeArrivals();
  void CloseWindow();
  void Print(const Stopwatch& stopwatch) const;
  void AtExit(const Stopwatch& stopwatch) const;

 private:
  struct PendingDeviceInterval {
    StopwatchMeasurement* measurement;
    DeviceEvents::Event start;
    DeviceEvents::Event end;
  };

  struct OneTime {
    std::string name;
    uint64_t start;
    uint64_t duration;
    bool running;
    int thread;
    Place place;
    FlightRecorder::Measurement* flight;
  };

  StopwatchMeasurement& FindOrAdd(std::string_view name);
  // By the options. REQUIRES: mutex_ is held.
  void Configure(StopwatchMeasurement& measurement);
  StopwatchRecord& AddChild(StopwatchRecord& parent, StopwatchMeasurement& measurement,
                            StopwatchThread& thread);
  StopwatchRecord& Child(StopwatchRecord& parent, StopwatchMeasurement& measurement, StopwatchThread& thread);

  uint64_t Since(uint64_t start, uint64_t now) const;
  void RecordBegin(const StopwatchMeasurement& measurement, uint64_t now, int thread) const;
  void RecordEnd(const StopwatchMeasurement& measurement, uint64_t now, int thread) const;
  // REQUIRES: mutex_ is held.
  void SetFlight(StopwatchMeasurement& measurement);

  // The hooks of one interval, around the two readings of the clock.
  void BeforeStart(StopwatchMeasurement& measurement, StopwatchHookState& state, bool nests, bool counted);
  void BeforeEnd(StopwatchMeasurement& measurement, StopwatchHookState& state);
  void AfterEnd(StopwatchMeasurement& measurement, StopwatchHookState& state, bool nests);
  void Synchronize() const;
  void AddArrival(StopwatchMeasurement& measurement, StopwatchHookState& state);
  std::optional<ThreadTimes> ReadTimes(StopwatchThread& thread) const;
  void BeginCollective(StopwatchHookState& state, bool nests);
  // has_arrival: whether AddArrival() was called.
  void EndCollective(StopwatchMeasurement& measurement, const StopwatchHookState& state, bool has_arrival,
                     bool nests);
  void AddWaiting(StopwatchThread& thread, uint64_t picoseconds);
  void BeginWatching(StopwatchMeasurement& measurement, StopwatchHookState& state, bool nests);
  void EndWatching(StopwatchMeasurement& measurement, const StopwatchHookState& state);
  void AddOwnTimes(uint64_t duration);
  void BeginOwnTimes(StopwatchThread& thread, const std::optional<ThreadTimes>& times,
                     uint64_t process_cpu_time);
  void AddOwnTime(StopwatchMeasurement& measurement, bool is_disturbed);
  void StartCpuUsage();
  void EndCpuUsage();
  // Takes in the device intervals that have happened.
  void ReadDeviceEvents() const;

  absl::Status CheckOptions(const Stopwatch::Options& options);
  void ChooseClock();
  double CalibrateCost() const;
  std::string WhatRuns() const;
  void CloseIteration(uint64_t duration);
  void SnapshotThreads(StopwatchSnapshot& snapshot) const;
  void SnapshotDevice(StopwatchSnapshot& snapshot) const;
  void MisuseOfScope(const StopwatchFrame& ended, const StopwatchFrame& innermost);
  void Misuse(const std::string& message) const;

  std::optional<Clock> given_clock_;
  Stopwatch::Environment environment_;

  // True if Enable() was called; otherwise all there is to do is to record.
  std::atomic<bool> enabled_{false};
  // Null outside of a profiler's windows.
  std::atomic<EventRecorder*> recorder_{nullptr};
  // Set by Enable() or RecordInto() before any use.
  Clock clock_ = Clock::Steady();
  Stopwatch::Options options_;
  uint32_t hooks_of_all_ = 0;
  double observer_seconds_per_interval_ = 0;
  std::unique_ptr<DeviceEvents> device_events_;

  std::atomic<bool> counting_{false};
  mutable std::atomic<int64_t> num_misuses_{0};
  PerThread<StopwatchThread> threads_;

  mutable std::mutex device_mutex_;
  // Guarded by device_mutex_, oldest first.
  mutable std::deque<PendingDeviceInterval> pending_;

  mutable std::mutex cpu_mutex_;
  // Guarded by cpu_mutex_.
  CpuUsage cpu_usage_;
  CpuTimes cpu_usage_start_;
  int num_watching_cpu_usage_ = 0;

  // True if Start() was ever called.
  std::atomic<bool> has_started_{false};

  std::mutex arrivals_mutex_;
  // Guarded by arrivals_mutex_: collective measurements that run on any thread, since when, and how long any
  // did in this iteration.
  int num_collectives_ = 0;
  uint64_t waiting_since_ = 0;
  uint64_t waiting_ = 0;

  // Taken before the others.
  mutable std::mutex mutex_;
  // Guarded by mutex_, as is all below.
  std::optional<Place> enabled_at_;
  bool has_chosen_clock_ = false;
  std::map<std::string, std::unique_ptr<StopwatchMeasurement>, std::less<>> by_name_;
  std::vector<StopwatchMeasurement*> measurements_;
  std::vector<OneTime> one_time_;
  std::string cpu_usage_measurement_;
  FlightRecorder* flight_recorder_ = nullptr;
  std::map<std::string, FlightOperation, std::less<>> operations_;
  // Read without it, too.
  std::atomic<int64_t> num_finished_{0};
  std::optional<uint64_t> iteration_start_;
  IntervalAccumulator iteration_;
  IterationSeries iteration_series_;
  OwnTimeRecorder work_;
  StopwatchSnapshot::OwnWork own_work_;
  // The iteration before: the thread that ended it, and the process's CPU time then.
  const StopwatchThread* finishing_thread_ = nullptr;
  uint64_t process_cpu_time_ = 0;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_CORE_H_
