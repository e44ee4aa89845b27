#include "core/stopwatch/work_tracker.h"

#include <algorithm>
#include <utility>

#include "core/stopwatch/ticks.h"

namespace ott::internal {
namespace {

constexpr uint64_t kPicosecondsPerNanosecond = 1000;
// Reads CPU times no sooner than this after they were read last. In the long run, a read costs
// kPicosecondsPerRead, or kTimesOfRead times what it took if that is more, so that reads take at most one
// part in kTimesOfRead of the time. Long iterations save up for the places where they have many of them. In
// iterations shorter than kPicosecondsPerRead a read tells of several anyway. It costs one part in
// kShortReads of the time since the first one, within its bounds: what the last read misses is a small part.
constexpr uint64_t kMinWatchedPicoseconds = 100'000'000;
constexpr int64_t kPicosecondsPerRead = 1'000'000'000;
constexpr int64_t kLeastPicosecondsPerReadOfShort = 4 * kPicosecondsPerRead;
constexpr int64_t kShortReads = 64;
constexpr int64_t kTimesOfRead = 200;
constexpr int64_t kMostSavedPicoseconds = 16 * kPicosecondsPerRead;
// Reads the CPU time of the process after iterations of so long together: only its mean counts.
constexpr uint64_t kPicosecondsPerCount = 16'000'000'000;
// An iteration whose CPU was taken for more than one part in so many of its work says nothing about
// measurements of which it is not known how much of that was in them.
constexpr uint64_t kTakenParts = 50;
// A rank without a CPU as a collective ends leaves it late by some slice of the scheduler; time without one
// before that made nobody wait.
constexpr uint64_t kMaxLateExitNanoseconds = 4'000'000;

uint64_t Less(uint64_t value, uint64_t part) { return value > part ? value - part : 0; }

// Adds work, in picoseconds, in which others had the CPU for so long.
void AddOwn(uint64_t work, uint64_t taken, WorkTimeRecorder& own) {
  taken = std::min(taken, work);
  own.Add(static_cast<double>(work - taken) * 1e-12, static_cast<double>(taken) * 1e-12);
}

}  // namespace

WorkTracker::WorkTracker(const Stopwatch::Environment& environment) : environment_(environment) {}

void WorkTracker::Enable(const Clock& clock, bool watch_cpu) {
  clock_ = &clock;
  watch_cpu_ = watch_cpu;
}

void WorkTracker::Clear() {
  waiting_ = 0;
  work_ = WorkTimeRecorder();
  own_work_ = {};
  has_short_iterations_ = false;
  finishing_thread_ = nullptr;
  since_count_ = {};
}

// Takes times that were read a moment ago: they are no older than what a short interval could have lost.
std::optional<ThreadTimes> WorkTracker::ReadTimes(ThreadWork& thread) const {
  if (!watch_cpu_) return std::nullopt;
  const uint64_t now = clock_->Ticks();
  int64_t per_read = kPicosecondsPerRead;
  int64_t saved = kMostSavedPicoseconds;
  if (thread.read_at) {
    if (has_short_iterations_.load(std::memory_order_relaxed)) {
      const uint64_t all = PicosecondsBetween(*clock_, thread.first_read_at, now);
      per_read = std::clamp(static_cast<int64_t>(all) / kShortReads, kLeastPicosecondsPerReadOfShort,
                            kMostSavedPicoseconds);
    }
    const uint64_t passed = PicosecondsBetween(*clock_, *thread.read_at, now);
    saved = std::min(saved, thread.saved + static_cast<int64_t>(passed));
    if (passed < kMinWatchedPicoseconds || saved < per_read) return thread.times;
  }
  thread.times = environment_.read_thread_times();
  if (!thread.read_at) thread.first_read_at = now;
  thread.read_at = now;
  const auto took = static_cast<int64_t>(PicosecondsBetween(*clock_, now, clock_->Ticks()));
  // Whoever lost the CPU meanwhile did not read for so long.
  thread.saved = saved - std::clamp(kTimesOfRead * took, per_read, kMostSavedPicoseconds);
  return thread.times;
}

void WorkTracker::BeginCollective(ThreadWork& thread, IntervalWork& interval, bool nests) {
  interval.thread = thread.num_collectives == 0 ? &thread : nullptr;
  // One that is started and ended by calls may end on another thread.
  if (nests) ++thread.num_collectives;
  interval.times.reset();
  if (interval.thread != nullptr) interval.times = ReadTimes(thread);
  interval.start = clock_->Ticks();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_collectives_++ == 0) waiting_since_ = clock_->Ticks();
}

uint64_t WorkTracker::EndCollective(ThreadWork& thread, const IntervalWork& interval, bool nests,
                                    bool is_observer, uint64_t now) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--num_collectives_ == 0) waiting_ += PicosecondsBetween(*clock_, waiting_since_, now);
  }
  if (nests) --thread.num_collectives;
  if (interval.thread != &thread) return 0;
  // Those that are started and ended by calls may overlap: each counts from where the last one ended.
  const uint64_t last_end = std::exchange(thread.last_collective_end, now);
  const uint64_t duration = PicosecondsBetween(*clock_, std::max(interval.start, last_end), now);
  if (is_observer) thread.observed += duration / kPicosecondsPerNanosecond;
  if (interval.times.has_value()) {
    if (const std::optional<ThreadTimes> times = ReadTimes(thread); times.has_value()) {
      const ThreadTimes since = {std::max(interval.times->on_cpu, thread.at_collective_end.on_cpu),
                                 std::max(interval.times->taken, thread.at_collective_end.taken)};
      // The times at the start may be older than it.
      const uint64_t most = duration / kPicosecondsPerNanosecond;
      const ThreadTimes inside = {std::min(times->on_cpu - since.on_cpu, most),
                                  std::min(times->taken - since.taken, most)};
      thread.in_collectives.on_cpu += inside.on_cpu;
      thread.in_collectives.taken += inside.taken;
      if (is_observer) {
        thread.taken_in_observer += inside.taken;
      } else {
        thread.taken_in_vain += Less(inside.taken, kMaxLateExitNanoseconds);
      }
      thread.at_collective_end = *times;
    }
  }
  return duration;
}

void WorkTracker::SetTaken(ThreadWork& thread, const IntervalWork& interval,
                           StopwatchArrivals::Arrival* arrival) {
  arrival->observed = static_cast<int64_t>(std::exchange(thread.observed, 0));
  if (!interval.times.has_value()) return;
  if (thread.at_arrival.has_value()) {
    arrival->taken =
        (*interval.times - *thread.at_arrival).taken - thread.taken_in_vain - thread.taken_in_observer;
    arrival->taken_in_vain = static_cast<int64_t>(thread.taken_in_vain);
  }
  thread.at_arrival = interval.times;
  thread.taken_in_vain = 0;
  thread.taken_in_observer = 0;
}

void WorkTracker::BeginWatching(ThreadWork& thread, IntervalWork& interval, MeasurementWork& measurement,
                                bool is_inside) const {
  if (is_inside) {
    // Reading it at all depths would cost too much.
    measurement.is_inside.store(true, std::memory_order_relaxed);
    interval.thread = nullptr;
    return;
  }
  interval.thread = &thread;
  interval.times = ReadTimes(thread);
  interval.taken_in_collectives = thread.in_collectives.taken;
}

void WorkTracker::EndWatching(ThreadWork& thread, const IntervalWork& interval,
                              MeasurementWork& measurement) const {
  if (interval.thread != &thread || !interval.times.has_value()) return;
  const std::optional<ThreadTimes> times = ReadTimes(thread);
  if (!times.has_value()) return;
  const uint64_t in_collectives = thread.in_collectives.taken - interval.taken_in_collectives;
  measurement.taken.fetch_add(Less((*times - *interval.times).taken, in_collectives),
                              std::memory_order_relaxed);
}

void WorkTracker::StartIteration(ThreadWork& thread) {
  StartIteration(thread, ReadTimes(thread));
  if (watch_cpu_) CountCpu();
}

void WorkTracker::StartIteration(ThreadWork& thread, const std::optional<ThreadTimes>& times) {
  thread.at_iteration = times;
  thread.in_collectives = {};
  finishing_thread_ = &thread;
}

// Counts the iterations since it was called last, of which all are watched.
void WorkTracker::CountCpu() {
  const uint64_t process_cpu_time = environment_.read_process_cpu_time();
  // The process's CPU time is of all threads: this one may wait while others do its work.
  const uint64_t at_work = Less(process_cpu_time - process_cpu_time_, since_count_.in_collectives);
  own_work_.num_watched_iters += since_count_.num_iters;
  own_work_.taken_seconds += static_cast<double>(since_count_.taken) * 1e-12;
  own_work_.cpu_seconds +=
      static_cast<double>(std::min(at_work * kPicosecondsPerNanosecond, since_count_.work)) * 1e-12;
  process_cpu_time_ = process_cpu_time;
  since_count_ = {};
}

void WorkTracker::FinishIteration(ThreadWork& thread, uint64_t duration) {
  has_short_iterations_.store(duration < uint64_t{kPicosecondsPerRead}, std::memory_order_relaxed);
  const std::optional<ThreadTimes> times = ReadTimes(thread);
  uint64_t waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting = std::exchange(waiting_, 0);
  }
  const uint64_t work = Less(duration, waiting);
  uint64_t taken = 0;
  own_work_.waiting_seconds += static_cast<double>(waiting) * 1e-12;
  if (times.has_value() && thread.at_iteration.has_value() && finishing_thread_ == &thread) {
    taken =
        Less((*times - *thread.at_iteration).taken, thread.in_collectives.taken) * kPicosecondsPerNanosecond;
    ++since_count_.num_iters;
    since_count_.duration += duration;
    since_count_.work += work;
    since_count_.taken += std::min(taken, work);
    since_count_.in_collectives += thread.in_collectives.on_cpu;
    if (since_count_.duration >= kPicosecondsPerCount) CountCpu();
  } else {
    since_count_ = {};
    if (times.has_value()) CountCpu();
  }
  StartIteration(thread, times);
  AddOwn(work, taken, work_);
  is_disturbed_ = taken * kTakenParts > work;
}

bool WorkTracker::FinishMeasurement(MeasurementWork& measurement, uint64_t count, uint64_t duration,
                                    bool is_watched) const {
  const uint64_t waiting = measurement.waiting.exchange(0, std::memory_order_relaxed);
  const uint64_t taken = measurement.taken.exchange(0, std::memory_order_relaxed) * kPicosecondsPerNanosecond;
  if (count == 0) return is_watched;
  const bool is_inside = measurement.is_inside.load(std::memory_order_relaxed);
  if ((is_watched && !is_inside) || !is_disturbed_) {
    AddOwn(Less(duration, waiting), taken, measurement.own);
  }
  if (is_inside) return false;
  return is_watched || (watch_cpu_ && duration > count * kMinWatchedPicoseconds);
}

StopwatchSnapshot::OwnWork WorkTracker::Read() const {
  StopwatchSnapshot::OwnWork own_work = own_work_;
  own_work.time = work_.Read();
  return own_work;
}

}  // namespace ott::internal
