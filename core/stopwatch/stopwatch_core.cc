#include "stopwatch_core.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "absl/strings/str_cat.h"
#include "ott/core/base/device_sync.h"

namespace ott::internal {

StopwatchThread::StopwatchThread() {
  outermost.thread = this;
  outermost.record = &root;
}

StopwatchCore::StopwatchCore()
    : synchronize_device_(&SynchronizeDevice),
      // The state of a thread that left a scope running is not used again, so that FinishIter() names it.
      threads_([](StopwatchThread& thread) { thread.id = ThisThreadId(); },
               [](StopwatchThread& thread) { return thread.innermost == &thread.outermost; }) {}

StopwatchCore::StopwatchCore(const Stopwatch::Environment& environment) : StopwatchCore() {
  given_clock_ = environment.clock;
  synchronize_device_ = environment.synchronize_device;
}

absl::Status StopwatchCore::Enable(const Stopwatch::Options& options, Place place) {
  if (options.num_warmup_iters < 0 || options.print_every_n_iters < 0) {
    return absl::InvalidArgumentError(absl::StrCat("stopwatch: num_warmup_iters ", options.num_warmup_iters,
                                                   " and print_every_n_iters ", options.print_every_n_iters,
                                                   " must not be negative"));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (enabled_at_.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("stopwatch: enabled at ", At(place), ", but it is since ", At(*enabled_at_)));
  }
  const bool synchronizes = options.device_timing == Stopwatch::DeviceTiming::kSynchronizeDevice;
  if (synchronizes) {
    const absl::Status status = synchronize_device_();
    if (!status.ok()) return absl::Status(status.code(), absl::StrCat("stopwatch: ", status.message()));
  }
  enabled_at_ = place;
  options_ = options;
  synchronizes_ = synchronizes;
  clock_ = given_clock_.has_value() ? *given_clock_ : Clock::Fastest();
  counting_ = options.num_warmup_iters == 0;
  return absl::OkStatus();
}

StopwatchMeasurement& StopwatchCore::Find(Stopwatch::Measurement& measurement) {
  StopwatchMeasurement* found = measurement.found_.load(std::memory_order_acquire);
  if (__builtin_expect(found != nullptr && found->core == this, 1)) return *found;
  found = &FindOrAdd(measurement.name_);
  measurement.found_.store(found, std::memory_order_release);
  return *found;
}

StopwatchMeasurement& StopwatchCore::Find(std::string_view name) {
  StopwatchThread& thread = threads_.Get();
  const size_t hash = std::hash<std::string_view>()(name);
  const size_t mask = thread.known.size() - 1;
  size_t slot = hash & mask;
  for (; thread.known[slot].measurement != nullptr; slot = (slot + 1) & mask) {
    if (thread.known[slot].hash == hash && thread.known[slot].measurement->name == name) {
      return *thread.known[slot].measurement;
    }
  }
  StopwatchMeasurement& measurement = FindOrAdd(name);
  thread.known[slot] = {hash, &measurement};
  if (++thread.num_known * 2 > thread.known.size()) {
    std::vector<StopwatchThread::Known> larger(thread.known.size() * 2);
    for (const StopwatchThread::Known& known : thread.known) {
      if (known.measurement == nullptr) continue;
      size_t free = known.hash & (larger.size() - 1);
      while (larger[free].measurement != nullptr) free = (free + 1) & (larger.size() - 1);
      larger[free] = known;
    }
    thread.known = std::move(larger);
  }
  return measurement;
}

StopwatchMeasurement& StopwatchCore::FindOrAdd(std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return *found->second;
  auto added = std::make_unique<StopwatchMeasurement>(this, name, measurements_.size());
  added->collective = std::count(options_.collective_measurements.begin(),
                                 options_.collective_measurements.end(), added->name) != 0;
  if (!iteration_start_.has_value()) iteration_start_ = clock_.Ticks();
  measurements_.push_back(added.get());
  return *by_name_.emplace(added->name, std::move(added)).first->second;
}

StopwatchRecord& StopwatchCore::Child(StopwatchRecord& parent, StopwatchMeasurement& measurement,
                                      StopwatchThread& thread) {
  if (__builtin_expect(measurement.index < parent.children.size(), 1)) {
    StopwatchRecord* const child = parent.children[measurement.index];
    if (__builtin_expect(child != nullptr, 1)) return *child;
  }
  return AddChild(parent, measurement, thread);
}

StopwatchRecord& StopwatchCore::AddChild(StopwatchRecord& parent, StopwatchMeasurement& measurement,
                                         StopwatchThread& thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
  if (parent.children.size() <= measurement.index) parent.children.resize(measurements_.size());
  auto& added = thread.records.emplace_back(std::make_unique<StopwatchRecord>(&measurement, &parent));
  return *(parent.children[measurement.index] = added.get());
}

uint64_t StopwatchCore::Now() const {
  if (__builtin_expect(synchronizes_, 0)) Synchronize();
  return clock_.Ticks();
}

void StopwatchCore::Synchronize() const {
  // An error that comes up later than Enable() is of the program's own work; its next CUDA call reports it.
  synchronize_device_().IgnoreError();
}

uint64_t StopwatchCore::Since(uint64_t start, uint64_t now) const {
  // Counters of two CPUs may differ by a few ticks.
  return now > start ? clock_.ToPicoseconds(now - start) : 0;
}

void StopwatchCore::Start(StopwatchMeasurement& measurement, Place place) {
  uint32_t state = StopwatchMeasurement::kIdle;
  if (!measurement.state.compare_exchange_strong(state, StopwatchMeasurement::kChanging,
                                                 std::memory_order_acquire)) {
    return Misuse(absl::StrCat("Start(", Quoted(measurement.name), ") at ", At(place), " on thread ",
                               ThisThreadId(), ", but it runs since ", At(measurement.place.Load()),
                               ", started by thread ", measurement.thread.load(std::memory_order_relaxed),
                               "; end it first"));
  }
  measurement.thread.store(threads_.Get().id.load(std::memory_order_relaxed), std::memory_order_relaxed);
  measurement.place.Store(place);
  measurement.counted = counting_.load(std::memory_order_relaxed);
  measurement.start = Now();
  measurement.state.store(StopwatchMeasurement::kRunning, std::memory_order_release);
}

void StopwatchCore::End(StopwatchMeasurement& measurement, Place place) {
  const uint64_t now = Now();
  uint32_t state = StopwatchMeasurement::kRunning;
  if (!measurement.state.compare_exchange_strong(state, StopwatchMeasurement::kChanging,
                                                 std::memory_order_acquire)) {
    return Misuse(absl::StrCat("End(", Quoted(measurement.name), ") at ", At(place), " on thread ",
                               ThisThreadId(), ", but it does not run; start it first"));
  }
  if (measurement.counted) {
    StopwatchThread& thread = threads_.Get();
    Child(thread.root, measurement, thread).intervals.Add(Since(measurement.start, now), 0);
  }
  // Last, so that FinishIter() on another thread sees either an interval that runs or one that counts.
  measurement.state.store(StopwatchMeasurement::kIdle, std::memory_order_release);
}

StopwatchFrame* StopwatchCore::BeginScope(StopwatchMeasurement& measurement, Place place) {
  StopwatchThread& thread = threads_.Get();
  StopwatchFrame* const outer = thread.innermost.load(std::memory_order_relaxed);
  StopwatchRecord& parent = *outer->record.load(std::memory_order_relaxed);
  if (__builtin_expect(outer->inner == nullptr, 0)) {
    outer->inner = std::make_unique<StopwatchFrame>();
    outer->inner->core = this;
    outer->inner->thread = &thread;
    outer->inner->outer = outer;
  }
  StopwatchFrame* const frame = outer->inner.get();
  frame->record.store(&Child(parent, measurement, thread), std::memory_order_relaxed);
  frame->place.Store(place);
  frame->inner_duration = 0;
  frame->counted = counting_.load(std::memory_order_relaxed);
  thread.innermost.store(frame, std::memory_order_release);
  frame->start = Now();
  return frame;
}

void StopwatchCore::EndScope(StopwatchFrame* frame) {
  const uint64_t now = Now();
  StopwatchThread& thread = *frame->thread;
  StopwatchFrame* const innermost = thread.innermost.load(std::memory_order_relaxed);
  StopwatchRecord& record = *frame->record.load(std::memory_order_relaxed);
  if (__builtin_expect(innermost != frame, 0)) {
    const StopwatchRecord& inside = *innermost->record.load(std::memory_order_relaxed);
    return Misuse(absl::StrCat("the scope ", Quoted(record.measurement->name), " of ",
                               At(frame->place.Load()), " ends on thread ", ThisThreadId(),
                               " before the scope ",
                               inside.measurement == nullptr ? "around it" : Quoted(inside.measurement->name),
                               " of ", At(innermost->place.Load()), " that began in it; scopes must nest"));
  }
  if (frame->counted) {
    const uint64_t duration = Since(frame->start, now);
    record.intervals.Add(duration, frame->inner_duration);
    frame->outer->inner_duration += duration;
  }
  thread.innermost.store(frame->outer, std::memory_order_release);
}

void StopwatchCore::StartOneTime(std::string_view name, Place place) {
  const uint64_t now = Now();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const OneTime& known : one_time_) {
    if (known.name != name) continue;
    return Misuse(absl::StrCat("StartOneTime(", Quoted(name), ") at ", At(place), " on thread ",
                               ThisThreadId(), ", but it was started at ", At(known.place), " by thread ",
                               known.thread, "; it can run but once"));
  }
  one_time_.push_back({std::string(name), now, 0, true, ThisThreadId(), place});
}

void StopwatchCore::EndOneTime(std::string_view name, Place place) {
  const uint64_t now = Now();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (OneTime& known : one_time_) {
    if (known.name != name || !known.running) continue;
    known.running = false;
    known.duration = Since(known.start, now);
    return;
  }
  Misuse(absl::StrCat("EndOneTime(", Quoted(name), ") at ", At(place), " on thread ", ThisThreadId(),
                      ", but it does not run; start it first"));
}

// The first few of all that stands in the way of FinishIter(), or "".
std::string StopwatchCore::WhatRuns() const {
  std::string result;
  for (const StopwatchMeasurement* measurement : measurements_) {
    if (measurement->state.load(std::memory_order_acquire) == StopwatchMeasurement::kIdle) continue;
    absl::StrAppend(&result, "\n  ", Quoted(measurement->name), ", started at ",
                    At(measurement->place.Load()), " by thread ",
                    measurement->thread.load(std::memory_order_relaxed));
  }
  const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
  for (const StopwatchThread* thread : threads_.all()) {
    const StopwatchFrame* frame = thread->innermost.load(std::memory_order_acquire);
    for (; frame != &thread->outermost; frame = frame->outer) {
      const StopwatchRecord& record = *frame->record.load(std::memory_order_relaxed);
      absl::StrAppend(&result, "\n  scope ", Quoted(record.measurement->name), ", begun at ",
                      At(frame->place.Load()), " by thread ", thread->id.load(std::memory_order_relaxed));
    }
  }
  return result;
}

bool StopwatchCore::FinishIter(Place place) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const std::string running = WhatRuns(); !running.empty()) {
    Misuse(absl::StrCat("FinishIter() at ", At(place), " on thread ", ThisThreadId(),
                        ", but these run:", running));
    return false;
  }
  if (counting_.load(std::memory_order_relaxed)) CloseIteration();
  ++num_finished_;
  counting_.store(num_finished_ >= options_.num_warmup_iters, std::memory_order_relaxed);
  iteration_start_ = clock_.Ticks();
  const int64_t num_measured = num_finished_ - options_.num_warmup_iters;
  return num_measured > 0 && options_.print_every_n_iters > 0 &&
         num_measured % options_.print_every_n_iters == 0;
}

void StopwatchCore::CloseIteration() {
  if (iteration_start_.has_value()) iteration_.AddPicoseconds(Since(*iteration_start_, clock_.Ticks()));
  struct Finished {
    uint64_t count = 0;
    Uint128 total = 0;
  };
  std::vector<Finished> finished(measurements_.size());
  const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
  for (const StopwatchThread* thread : threads_.all()) {
    for (const auto& record : thread->records) {
      const IntervalAccumulator::Totals sums = record->intervals.ReadTotals();
      finished[record->measurement->index].count += sums.count;
      finished[record->measurement->index].total += sums.total;
    }
  }
  for (StopwatchMeasurement* measurement : measurements_) {
    const auto& [count, total] = finished[measurement->index];
    if (count == measurement->finished_count) continue;
    measurement->per_iteration.AddPicoseconds(static_cast<uint64_t>(total - measurement->finished_total));
    measurement->finished_count = count;
    measurement->finished_total = total;
  }
}

void StopwatchCore::Stats(StopwatchStats* stats) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats->set_num_warmup_iters(options_.num_warmup_iters);
  stats->set_num_measured_iters(std::max<int64_t>(0, num_finished_ - options_.num_warmup_iters));
  stats->set_num_misuses(num_misuses_);
  *stats->mutable_iteration() = iteration_.ToProto();
  std::vector<DurationStatistics> per_interval(measurements_.size());
  const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
  for (const StopwatchThread* thread : threads_.all()) {
    for (const auto& record : thread->records) {
      per_interval[record->measurement->index].Merge(record->intervals.Read());
    }
  }
  stats->clear_measurements();
  for (const StopwatchMeasurement* measurement : measurements_) {
    Measurement& result = *stats->add_measurements();
    result.set_name(measurement->name);
    *result.mutable_per_interval() = per_interval[measurement->index].ToProto();
    *result.mutable_per_iteration() = measurement->per_iteration.ToProto();
    result.set_collective(measurement->collective);
  }
  stats->clear_one_time();
  for (const OneTime& one_time : one_time_) {
    OneTimeMeasurement& result = *stats->add_one_time();
    result.set_name(one_time.name);
    result.set_running(one_time.running);
    const uint64_t duration = one_time.running ? Since(one_time.start, clock_.Ticks()) : one_time.duration;
    result.set_seconds(static_cast<double>(duration) * 1e-12);
  }
}

void StopwatchCore::Print(const Stopwatch& stopwatch) const {
  if (options_.print) return options_.print(stopwatch);
  const std::string table = stopwatch.Table();
  std::fwrite(table.data(), 1, table.size(), stdout);
  std::fflush(stdout);
}

void StopwatchCore::Misuse(const std::string& message) const {
  ReportMisuse(options_.on_misuse, absl::StrCat("stopwatch: ", message));
  num_misuses_.fetch_add(1, std::memory_order_relaxed);
}

void StartByName(StopwatchCore& core, std::string_view name, Place place) {
  core.Start(core.Find(name), place);
}

void StartByHandle(StopwatchCore& core, Stopwatch::Measurement& measurement, Place place) {
  core.Start(core.Find(measurement), place);
}

void EndByName(StopwatchCore& core, std::string_view name, Place place) { core.End(core.Find(name), place); }

void EndByHandle(StopwatchCore& core, Stopwatch::Measurement& measurement, Place place) {
  core.End(core.Find(measurement), place);
}

StopwatchFrame* BeginScopeByName(StopwatchCore& core, std::string_view name, Place place) {
  return core.BeginScope(core.Find(name), place);
}

StopwatchFrame* BeginScopeByHandle(StopwatchCore& core, Stopwatch::Measurement& measurement, Place place) {
  return core.BeginScope(core.Find(measurement), place);
}

void EndScope(StopwatchFrame* frame) { frame->core->EndScope(frame); }

void StartOneTime(StopwatchCore& core, std::string_view name, Place place) { core.StartOneTime(name, place); }

void EndOneTime(StopwatchCore& core, std::string_view name, Place place) { core.EndOneTime(name, place); }

bool FinishIter(StopwatchCore& core, Place place) { return core.FinishIter(place); }

void Print(StopwatchCore& core, const Stopwatch& stopwatch) { core.Print(stopwatch); }

}  // namespace ott::internal
