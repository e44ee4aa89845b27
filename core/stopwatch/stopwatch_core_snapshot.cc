// The functions of StopwatchCore that hand out what it measured.

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "core/stopwatch/scope_tree.h"
#include "core/stopwatch/stopwatch_core.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"

namespace ott::internal {

StopwatchSnapshot StopwatchCore::Snapshot() const {
  DeviceIntervals* const device = hooks_.device();
  if (device != nullptr) device->Read();
  StopwatchSnapshot snapshot;
  const std::lock_guard<std::mutex> lock(mutex_);
  snapshot.num_warmup_iters = options_.num_warmup_iters;
  snapshot.num_warmup_iters_done = std::min<int64_t>(num_finished_, options_.num_warmup_iters);
  snapshot.num_measured_iters = std::max<int64_t>(0, num_finished_ - options_.num_warmup_iters);
  snapshot.iteration = iteration_.Read();
  snapshot.iteration_series = iteration_series_;
  snapshot.own_work = hooks_.work().Read();
  for (const StopwatchMeasurement* measurement : measurements_) {
    StopwatchSnapshot::Measurement& added = snapshot.measurements.emplace_back();
    added.name = measurement->name;
    added.collective = measurement->collective;
    added.sampled = measurement->sampled;
    added.per_iteration = measurement->per_iteration.Read();
    added.series = measurement->series;
    added.own = measurement->hooks.work.own.Read();
    if (measurement->hooks.on_device != nullptr) {
      added.device_per_interval = measurement->hooks.on_device->Read();
    }
  }
  SnapshotThreads(snapshot);
  LeaveOutWhatNeverStarted(snapshot);
  if (device != nullptr) snapshot.num_pending_device_intervals = device->num_pending();
  snapshot.one_time = one_time_.Read(clock_);
  snapshot.cpu_usage_measurement = cpu_usage_measurement_;
  snapshot.cpu_usage = hooks_.cpu_usage().Read();
  snapshot.observer_seconds_per_interval = observer_seconds_per_interval_;
  snapshot.misuses = misuses_.Counts();
  return snapshot;
}

void StopwatchCore::SnapshotThreads(StopwatchSnapshot& snapshot) const {
  ScopeTree scopes;
  const std::lock_guard<std::mutex> lock(threads_.mutex());
  for (const StopwatchThread* thread : threads_.all()) {
    for (const auto& record : thread->records) {
      snapshot.measurements[record->measurement->index].per_interval.Merge(record->intervals.Read());
    }
    scopes.Add(thread->root, thread->records);
  }
  snapshot.scopes = scopes.Scopes();
}

// A measurement never started if only its operation was told, or if it ran before Enable() alone.
void StopwatchCore::LeaveOutWhatNeverStarted(StopwatchSnapshot& snapshot) const {
  std::vector<StopwatchSnapshot::Measurement> started;
  for (const StopwatchMeasurement* measurement : measurements_) {
    if (IntervalHooks::HasStarted(measurement->hooks))
      started.push_back(std::move(snapshot.measurements[measurement->index]));
  }
  snapshot.measurements = std::move(started);
}

std::vector<StopwatchArrivals> StopwatchCore::TakeArrivals() {
  std::vector<StopwatchArrivals> taken;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (StopwatchMeasurement* measurement : measurements_) {
    std::vector<StopwatchArrivals::Arrival> arrivals = measurement->hooks.arrivals.Take();
    const auto operation = operations_.find(measurement->name);
    // At what is said to be no collective, ranks do not meet.
    if (operation != operations_.end() && operation->second.role != FlightRole::kCollective) continue;
    if (!arrivals.empty()) taken.push_back({measurement->name, std::move(arrivals)});
  }
  return taken;
}

void StopwatchCore::CloseWindow() {
  const std::lock_guard<std::mutex> lock(mutex_);
  hooks_.work().CloseWindow();
  for (StopwatchMeasurement* measurement : measurements_) measurement->hooks.work.own.CloseWindow();
}

}  // namespace ott::internal
