// The implementation of a Stopwatch that is on.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_CORE_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_CORE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/stopwatch/interval_hooks.h"
#include "core/stopwatch/one_time_measurements.h"
#include "core/stopwatch/stopwatch_tables.h"
#include "core/stopwatch/ticks.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/misuse_log.h"
#include "ott/core/base/per_thread.h"
#include "ott/core/base/place.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/stopwatch/interval_accumulator.h"
#include "ott/core/stopwatch/iteration_series.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott::internal {

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
  StopwatchCore(const Stopwatch::Environment& environment, std::optional<Clock> given_clock);

  // REQUIRES of these: mutex_ is held.
  absl::Status CheckOptions(const Stopwatch::Options& options);
  void ChooseClock();
  double CalibrateCost() const;
  void Configure(StopwatchMeasurement& measurement);
  void SetFlight(StopwatchMeasurement& measurement);
  // Names the first of all that stands in the way of FinishIter(), and describes the first few; "" for
  // nothing.
  struct Running {
    std::string first;
    std::string all;
  };
  Running WhatRuns() const;
  // Begins the first iteration if this is the first start of any measurement. Not with mutex_ held.
  void NoteStart(StopwatchMeasurement& measurement);
  void CloseIteration(StopwatchThread& thread, uint64_t duration);
  void SnapshotThreads(StopwatchSnapshot& snapshot) const;
  void LeaveOutWhatNeverStarted(StopwatchSnapshot& snapshot) const;

  StopwatchMeasurement& FindOrAdd(std::string_view name);
  StopwatchRecord& Child(StopwatchRecord& parent, StopwatchMeasurement& measurement, StopwatchThread& thread);
  uint64_t Since(uint64_t start, uint64_t now) const { return PicosecondsBetween(clock_, start, now); }
  void RecordBegin(const StopwatchMeasurement& measurement, uint64_t now, int thread) const;
  void RecordEnd(const StopwatchMeasurement& measurement, uint64_t now, int thread) const;
  void AfterEnd(const HookedInterval& interval, StopwatchThread& thread);
  // Ends the innermost scope of `thread`, the calling one.
  void CloseScope(StopwatchThread& thread, uint64_t now, bool counted);
  void CloseScopesEndedWrongly(StopwatchThread& thread);
  void MisuseOfScope(const StopwatchFrame& ended, const StopwatchFrame& innermost);
  void ReportMisuse(const std::string& kind, const std::string& message) const;

  const std::optional<Clock> given_clock_;
  const Stopwatch::Environment environment_;

  // True if Enable() was called; otherwise all there is to do is to record.
  std::atomic<bool> enabled_{false};
  // Null outside of a profiler's windows.
  std::atomic<EventRecorder*> recorder_{nullptr};
  // Set by Enable() or RecordInto() before any use.
  Clock clock_ = Clock::Steady();
  Stopwatch::Options options_;
  double observer_seconds_per_interval_ = 0;

  std::atomic<bool> counting_{false};
  mutable MisuseLog misuses_{"stopwatch"};
  PerThread<StopwatchThread> threads_;
  // True if Start() was ever called.
  std::atomic<bool> has_started_{false};
  IntervalHooks hooks_;

  // Taken before the others.
  mutable std::mutex mutex_;
  // Guarded by mutex_, as is all below.
  std::optional<Place> enabled_at_;
  bool has_chosen_clock_ = false;
  std::map<std::string, std::unique_ptr<StopwatchMeasurement>, std::less<>> by_name_;
  std::vector<StopwatchMeasurement*> measurements_;
  OneTimeMeasurements one_time_;
  std::string cpu_usage_measurement_;
  FlightRecorder* flight_recorder_ = nullptr;
  std::map<std::string, FlightOperation, std::less<>> operations_;
  // Read without it, too.
  std::atomic<int64_t> num_finished_{0};
  std::optional<uint64_t> iteration_start_;
  IntervalAccumulator iteration_;
  IterationSeries iteration_series_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_CORE_H_
