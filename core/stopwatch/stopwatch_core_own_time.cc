// What of an iteration is a process's own work: the time that passes, less the collective measurements in it,
// less what others had the CPU for.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "core/stopwatch/stopwatch_core.h"

namespace ott::internal {
namespace {

constexpr uint64_t kPicosecondsPerNanosecond = 1000;
// Reads CPU times only as often as this, so that the reads cost little.
constexpr uint64_t kMinWatchedPicoseconds = 100'000'000;
// An iteration whose CPU was taken for more than one part in so many of its work says nothing about
// measurements of which it is not known how much of that was in them.
constexpr uint64_t kTakenParts = 50;
// Who has no CPU as a collective ends leaves it late by some slice of the scheduler; what it was without one
// before that made nobody wait.
constexpr uint64_t kMaxLateExitNanoseconds = 4'000'000;

uint64_t Less(uint64_t value, uint64_t part) { return value > part ? value - part : 0; }

}  // namespace

// What was read a moment ago is no older than what a short interval could have lost.
std::optional<ThreadTimes> StopwatchCore::ReadTimes(StopwatchThread& thread) const {
  if (!options_.watch_cpu) return std::nullopt;
  const uint64_t now = clock_.Ticks();
  if (!thread.read_at || Since(*thread.read_at, now) >= kMinWatchedPicoseconds) {
    thread.times = environment_.read_thread_times();
    thread.read_at = now;
  }
  return thread.times;
}

void StopwatchCore::BeginCollective(StopwatchHookState& state, bool nests) {
  StopwatchThread& thread = threads_.Get();
  // Null: what is inside of another counts with that.
  state.thread = thread.num_collectives == 0 ? &thread : nullptr;
  // One that is started and ended by calls may end on another thread.
  if (nests) ++thread.num_collectives;
  state.times.reset();
  if (state.thread != nullptr) state.times = ReadTimes(thread);
  state.collective_start = clock_.Ticks();
  const std::lock_guard<std::mutex> lock(arrivals_mutex_);
  if (num_collectives_++ == 0) waiting_since_ = clock_.Ticks();
}

void StopwatchCore::EndCollective(StopwatchMeasurement& measurement, const StopwatchHookState& state,
                                  bool has_arrival, bool nests) {
  StopwatchThread& thread = threads_.Get();
  const uint64_t now = clock_.Ticks();
  {
    const std::lock_guard<std::mutex> lock(arrivals_mutex_);
    if (--num_collectives_ == 0) waiting_ += Since(waiting_since_, now);
    const size_t size = measurement.arrivals ? measurement.arrivals->size() : 0;
    const uint64_t num_since = measurement.num_arrivals - state.arrival_number;
    // Else it was taken while it ran.
    if (has_arrival && num_since <= size) {
      StopwatchArrivals::Arrival& arrival = (*measurement.arrivals)[size - num_since];
      arrival.inside = static_cast<int64_t>(Since(state.collective_start, now) / kPicosecondsPerNanosecond);
    }
  }
  if (nests) --thread.num_collectives;
  if (state.thread != &thread) return;
  // Those that are started and ended by calls may overlap: each counts from where the last one ended.
  if (state.times.has_value()) {
    if (const std::optional<ThreadTimes> times = ReadTimes(thread); times.has_value()) {
      const ThreadTimes since = {std::max(state.times->on_cpu, thread.at_collective_end.on_cpu),
                                 std::max(state.times->taken, thread.at_collective_end.taken)};
      const ThreadTimes inside = *times - since;
      thread.in_collectives.on_cpu += inside.on_cpu;
      thread.in_collectives.taken += inside.taken;
      thread.taken_in_vain += Less(inside.taken, kMaxLateExitNanoseconds);
      thread.at_collective_end = *times;
    }
  }
  AddWaiting(thread, Since(std::max(state.collective_start, thread.last_collective_end), now));
  thread.last_collective_end = now;
}

// To all measurements that a collective one is inside of.
void StopwatchCore::AddWaiting(StopwatchThread& thread, uint64_t picoseconds) {
  const StopwatchFrame* frame = thread.innermost.load(std::memory_order_relaxed);
  for (; frame != &thread.outermost; frame = frame->outer) {
    frame->record.load(std::memory_order_relaxed)
        ->measurement->waiting.fetch_add(picoseconds, std::memory_order_relaxed);
  }
  // Few programs start and end measurements by calls.
  if (!has_started_.load(std::memory_order_relaxed)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const int id = thread.id.load(std::memory_order_relaxed);
  for (StopwatchMeasurement* measurement : measurements_) {
    if (measurement->state.load(std::memory_order_acquire) != StopwatchMeasurement::kRunning) continue;
    if (measurement->thread.load(std::memory_order_relaxed) != id) continue;
    measurement->waiting.fetch_add(picoseconds, std::memory_order_relaxed);
  }
}

void StopwatchCore::BeginWatching(StopwatchMeasurement& measurement, StopwatchHookState& state, bool nests) {
  StopwatchThread& thread = threads_.Get();
  const StopwatchFrame* const innermost = thread.innermost.load(std::memory_order_relaxed);
  const StopwatchFrame* const around = nests ? innermost->outer : innermost;
  if (around != &thread.outermost) {
    // Reading it at all depths would cost too much.
    measurement.is_inside.store(true, std::memory_order_relaxed);
    state.thread = nullptr;
    return;
  }
  state.thread = &thread;
  state.times = ReadTimes(thread);
  state.taken_in_collectives = thread.in_collectives.taken;
}

void StopwatchCore::EndWatching(StopwatchMeasurement& measurement, const StopwatchHookState& state) {
  StopwatchThread& thread = threads_.Get();
  if (state.thread != &thread || !state.times.has_value()) return;
  const std::optional<ThreadTimes> times = ReadTimes(thread);
  if (!times.has_value()) return;
  const uint64_t in_collectives = thread.in_collectives.taken - state.taken_in_collectives;
  measurement.taken.fetch_add(Less((*times - *state.times).taken, in_collectives), std::memory_order_relaxed);
}

// Of the iteration that ends, on the thread that ends it. Picoseconds.
void StopwatchCore::AddOwnTimes(uint64_t duration) {
  StopwatchThread& thread = threads_.Get();
  const std::optional<ThreadTimes> times = ReadTimes(thread);
  uint64_t waiting;
  {
    const std::lock_guard<std::mutex> lock(arrivals_mutex_);
    waiting = std::exchange(waiting_, 0);
  }
  const uint64_t process_cpu_time = times.has_value() ? environment_.read_process_cpu_time() : 0;
  ThreadTimes at_work;
  const bool is_watched =
      times.has_value() && thread.at_iteration.has_value() && finishing_thread_ == &thread;
  if (is_watched) {
    // Of all threads: this one may wait while others do its work.
    const uint64_t on_cpu = process_cpu_time - process_cpu_time_;
    at_work.on_cpu = Less(on_cpu, thread.in_collectives.on_cpu);
    at_work.taken = Less((*times - *thread.at_iteration).taken, thread.in_collectives.taken);
  }
  BeginOwnTimes(thread, times, process_cpu_time);
  const uint64_t work = Less(duration, waiting);
  const uint64_t taken = at_work.taken * kPicosecondsPerNanosecond;
  own_work_.waiting_seconds += static_cast<double>(waiting) * 1e-12;
  if (is_watched) {
    ++own_work_.num_watched_iters;
    own_work_.taken_seconds += static_cast<double>(std::min(taken, work)) * 1e-12;
    own_work_.cpu_seconds +=
        static_cast<double>(std::min(at_work.on_cpu * kPicosecondsPerNanosecond, work)) * 1e-12;
  }
  work_.Add(static_cast<double>(Less(work, taken)) * 1e-12);
  const bool is_disturbed = taken * kTakenParts > work;
  for (StopwatchMeasurement* measurement : measurements_) {
    AddOwnTime(*measurement, options_.watch_cpu && is_disturbed);
  }
}

// What an iteration begins with.
void StopwatchCore::BeginOwnTimes(StopwatchThread& thread, const std::optional<ThreadTimes>& times,
                                  uint64_t process_cpu_time) {
  thread.at_iteration = times;
  thread.in_collectives = {};
  finishing_thread_ = &thread;
  process_cpu_time_ = process_cpu_time;
}

void StopwatchCore::AddOwnTime(StopwatchMeasurement& measurement, bool is_disturbed) {
  const uint64_t waiting = measurement.waiting.exchange(0, std::memory_order_relaxed);
  const uint64_t taken = measurement.taken.exchange(0, std::memory_order_relaxed) * kPicosecondsPerNanosecond;
  if (measurement.collective || measurement.count == measurement.finished_count) return;
  const uint32_t hooks = measurement.hooks.load(std::memory_order_relaxed);
  const bool is_inside = measurement.is_inside.load(std::memory_order_relaxed);
  const bool is_watched = (hooks & kWatchHook) != 0 && !is_inside;
  const uint64_t duration = static_cast<uint64_t>(measurement.total - measurement.finished_total);
  if (is_watched || !is_disturbed)
    measurement.own.Add(static_cast<double>(Less(Less(duration, waiting), taken)) * 1e-12);
  const uint64_t count = measurement.count - measurement.finished_count;
  if (is_inside) {
    measurement.hooks.store(hooks & ~uint32_t{kWatchHook}, std::memory_order_release);
  } else if (options_.watch_cpu && duration > count * kMinWatchedPicoseconds) {
    measurement.hooks.store(hooks | kWatchHook, std::memory_order_release);
  }
}

void StopwatchCore::CloseWindow() {
  const std::lock_guard<std::mutex> lock(mutex_);
  work_.CloseWindow();
  for (StopwatchMeasurement* measurement : measurements_) measurement->own.CloseWindow();
}

}  // namespace ott::internal
