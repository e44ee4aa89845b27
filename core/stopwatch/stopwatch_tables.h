// The tables of a stopwatch that is on: its measurements, and what each thread has of them.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_TABLES_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_TABLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/stopwatch/interval_hooks.h"
#include "core/stopwatch/work_tracker.h"
#include "ott/core/base/place.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/stopwatch/interval_accumulator.h"
#include "ott/core/stopwatch/iteration_series.h"
#include "ott/core/stopwatch/stopwatch.h"

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

// Makes it as it was made. REQUIRES: nobody else uses it.
void Renew(IntervalAccumulator& intervals);

// All there is of one name, for all threads.
struct StopwatchMeasurement {
  enum State : uint32_t { kIdle, kChanging, kRunning };

  StopwatchMeasurement(StopwatchCore* core, std::string_view name, size_t index)
      : core(core), name(name), index(index) {}

  // Forgets what was measured, and what Enable() made of it. REQUIRES: nobody else uses it.
  void Clear();

  StopwatchCore* const core;
  const std::string name;
  // In the order of first use.
  const size_t index;
  MeasurementHooks hooks;
  // Null if there is no flight recorder, or no place in it.
  std::atomic<FlightRecorder::Measurement*> flight{nullptr};

  // Start() and End(): kChanging gives whoever set it the fields below.
  std::atomic<uint32_t> state{kIdle};
  std::atomic<int> thread{0};
  SharedPlace place;
  uint64_t start = 0;
  bool counted = false;
  IntervalHookState hook_state;

  // Guarded by the core's mutex.
  bool collective = false;
  bool sampled = false;
  IntervalAccumulator per_iteration;
  IterationSeries series;
  // Over all threads, now and at the last FinishIter().
  uint64_t count = 0;
  Uint128 total = 0;
  uint64_t finished_count = 0;
  Uint128 finished_total = 0;
};

// One measurement on one thread inside one other measurement.
struct StopwatchRecord {
  StopwatchRecord(StopwatchMeasurement* measurement, StopwatchRecord* parent)
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

struct StopwatchThread;

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
  // Ended before what was inside of it, or on another thread: closed when its thread comes back to it.
  std::atomic<bool> ended_wrongly{false};
  IntervalHookState hook_state;
};

// State that one thread at a time writes, and all may read.
struct StopwatchThread {
  StopwatchThread();

  // Returns the measurement of that name if the thread has met it, else null.
  StopwatchMeasurement* FindKnown(std::string_view name) const;
  // REQUIRES: the thread has not met it.
  void AddKnown(StopwatchMeasurement& measurement);

  // Returns the thread's record of `measurement` inside of `parent`; null if there is none.
  static StopwatchRecord* FindChild(const StopwatchRecord& parent, const StopwatchMeasurement& measurement) {
    return parent.children[Slot(parent.children, measurement)];
  }
  // REQUIRES: there is none, and the mutex of the list of threads is held.
  StopwatchRecord& AddChild(StopwatchRecord& parent, StopwatchMeasurement& measurement);

  // Forgets what was measured. REQUIRES: the thread does not use it.
  void Clear();

  std::atomic<int> id{0};
  StopwatchFrame outermost;
  std::atomic<StopwatchFrame*> innermost{&outermost};
  StopwatchRecord root{nullptr, nullptr};
  // Used by the thread alone.
  ThreadWork work;
  // Guarded by the mutex of the list of threads.
  std::vector<std::unique_ptr<StopwatchRecord>> records;

 private:
  struct Known {
    size_t hash;
    StopwatchMeasurement* measurement;
  };

  // Returns where a table of children has the measurement, or a free place for it.
  static size_t Slot(const std::vector<StopwatchRecord*>& children, const StopwatchMeasurement& measurement) {
    const size_t mask = children.size() - 1;
    size_t slot = measurement.index & mask;
    while (children[slot] != nullptr && children[slot]->measurement != &measurement) slot = (slot + 1) & mask;
    return slot;
  }

  // A hash table by name, a power of two large and never full. Used by the thread alone.
  std::vector<Known> known_ = std::vector<Known>(64);
  size_t num_known_ = 0;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_TABLES_H_
