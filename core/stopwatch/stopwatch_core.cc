#include "core/stopwatch/stopwatch_core.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_sink.h"
#include "ott/core/nvtx/nvtx.h"

namespace ott::internal {

StopwatchThread::StopwatchThread() {
  outermost.thread = this;
  outermost.record = &root;
}

StopwatchCore::StopwatchCore()
    : environment_{Clock::Steady()},
      // The state of a thread that left a scope running is not used again, so that FinishIter() names it.
      threads_([](StopwatchThread& thread) { thread.id = ThisThreadId(); },
               [](StopwatchThread& thread) { return thread.innermost == &thread.outermost; }) {}

StopwatchCore::StopwatchCore(const Stopwatch::Environment& environment) : StopwatchCore() {
  given_clock_ = environment.clock;
  environment_ = environment;
}

inline void StopwatchCore::RecordBegin(const StopwatchMeasurement& measurement, uint64_t now,
                                       int thread) const {
  FlightRecorder::Measurement* const flight = measurement.flight.load(std::memory_order_acquire);
  if (flight != nullptr) FlightRecorder::Begin(flight, now, thread);
  EventRecorder* const recorder = recorder_.load(std::memory_order_acquire);
  if (__builtin_expect(recorder == nullptr, 1)) return;
  recorder->BeginRange(EventCategory::kMeasurement, measurement.name.c_str(), now,
                       reinterpret_cast<uintptr_t>(measurement.name.c_str()));
}

inline void StopwatchCore::RecordEnd(const StopwatchMeasurement& measurement, uint64_t now,
                                     int thread) const {
  FlightRecorder::Measurement* const flight = measurement.flight.load(std::memory_order_acquire);
  if (flight != nullptr) FlightRecorder::End(flight, now, thread);
  EventRecorder* const recorder = recorder_.load(std::memory_order_acquire);
  if (__builtin_expect(recorder == nullptr, 1)) return;
  recorder->EndRange(EventCategory::kMeasurement, now, reinterpret_cast<uintptr_t>(measurement.name.c_str()));
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
  if (enabled()) {
    Configure(*added);
    for (int64_t i = options_.num_warmup_iters; i < num_finished_; ++i) added->series.Append(0);
    if (!iteration_start_.has_value()) iteration_start_ = clock_.Ticks();
  }
  measurements_.push_back(added.get());
  return *by_name_.emplace(added->name, std::move(added)).first->second;
}

namespace {

// Where the table of children has the measurement, or a free place for it.
StopwatchRecord** FindChild(std::vector<StopwatchRecord*>& children,
                            const StopwatchMeasurement& measurement) {
  const size_t mask = children.size() - 1;
  size_t slot = measurement.index & mask;
  while (children[slot] != nullptr && children[slot]->measurement != &measurement) slot = (slot + 1) & mask;
  return &children[slot];
}

}  // namespace

StopwatchRecord& StopwatchCore::Child(StopwatchRecord& parent, StopwatchMeasurement& measurement,
                                      StopwatchThread& thread) {
  StopwatchRecord* const child = *FindChild(parent.children, measurement);
  return __builtin_expect(child != nullptr, 1) ? *child : AddChild(parent, measurement, thread);
}

StopwatchRecord& StopwatchCore::AddChild(StopwatchRecord& parent, StopwatchMeasurement& measurement,
                                         StopwatchThread& thread) {
  if (++parent.num_children * 2 > parent.children.size()) {
    std::vector<StopwatchRecord*> larger(parent.children.size() * 2);
    for (StopwatchRecord* child : parent.children) {
      if (child != nullptr) *FindChild(larger, *child->measurement) = child;
    }
    parent.children = std::move(larger);
  }
  const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
  auto& added = thread.records.emplace_back(std::make_unique<StopwatchRecord>(&measurement, &parent));
  return *(*FindChild(parent.children, measurement) = added.get());
}

uint64_t StopwatchCore::Since(uint64_t start, uint64_t now) const {
  // Counters of two CPUs may differ by a few ticks.
  return now > start ? clock_.ToPicoseconds(now - start) : 0;
}

void StopwatchCore::BeforeStart(StopwatchMeasurement& measurement, StopwatchHookState& state, bool nests,
                                bool counted) {
  state.hooks = measurement.hooks.load(std::memory_order_acquire);
  if (!counted) state.hooks &= kNvtxHook | kSynchronizeHook;
  if ((state.hooks & kNvtxHook) != 0) {
    if (nests) {
      NvtxPush(measurement.name.c_str());
    } else {
      state.nvtx_range = NvtxStartRange(measurement.name.c_str());
    }
  }
  if ((state.hooks & kCpuUsageHook) != 0) StartCpuUsage();
  if ((state.hooks & kSynchronizeHook) != 0) Synchronize();
  // Before the times without a CPU are read: who has none between the two would be late without a reason.
  if ((state.hooks & kArrivalHook) != 0) {
    state.arrival = static_cast<int64_t>(environment_.steady_clock.Ticks());
  }
  if ((state.hooks & kCollectiveHook) != 0) BeginCollective(state, nests);
  if ((state.hooks & kWatchHook) != 0) BeginWatching(measurement, state, nests);
  if ((state.hooks & kArrivalHook) != 0) AddArrival(measurement, state);
  if ((state.hooks & kEventsHook) != 0) state.device_start = device_events_->Record();
}

void StopwatchCore::BeforeEnd(StopwatchMeasurement& measurement, StopwatchHookState& state) {
  if ((state.hooks & kSynchronizeHook) != 0) Synchronize();
  if ((state.hooks & kEventsHook) == 0 || state.device_start == nullptr) return;
  const DeviceEvents::Event end = device_events_->Record();
  if (end == nullptr) return device_events_->GiveBack(state.device_start);
  const std::lock_guard<std::mutex> lock(device_mutex_);
  pending_.push_back({&measurement, state.device_start, end});
}

void StopwatchCore::AfterEnd(StopwatchMeasurement& measurement, StopwatchHookState& state, bool nests) {
  const uint32_t hooks = std::exchange(state.hooks, 0);
  if ((hooks & kCollectiveHook) != 0) EndCollective(measurement, state, (hooks & kArrivalHook) != 0, nests);
  if ((hooks & kWatchHook) != 0) EndWatching(measurement, state);
  if ((hooks & kCpuUsageHook) != 0) EndCpuUsage();
  if ((hooks & kNvtxHook) == 0) return;
  if (nests) {
    NvtxPop();
  } else {
    NvtxEndRange(state.nvtx_range);
  }
}

void StopwatchCore::Synchronize() const {
  // An error that comes up later than Enable() is of the program's own work; its next CUDA call reports it.
  if (options_.device_sync == Stopwatch::DeviceSync::kStream) {
    environment_.synchronize_stream(options_.stream).IgnoreError();
  } else {
    environment_.synchronize_device().IgnoreError();
  }
}

// Scopes of one name may overlap: what counts is from the first that begins to the last that ends.
void StopwatchCore::StartCpuUsage() {
  const std::lock_guard<std::mutex> lock(cpu_mutex_);
  if (num_watching_cpu_usage_++ > 0) return;
  cpu_usage_start_ = environment_.read_cpu_times().value_or(CpuTimes());
}

void StopwatchCore::EndCpuUsage() {
  const std::lock_guard<std::mutex> lock(cpu_mutex_);
  if (--num_watching_cpu_usage_ > 0) return;
  cpu_usage_.Add(cpu_usage_start_, environment_.read_cpu_times().value_or(cpu_usage_start_));
}

void StopwatchCore::AddArrival(StopwatchMeasurement& measurement, StopwatchHookState& state) {
  StopwatchArrivals::Arrival arrival;
  arrival.nanoseconds = state.arrival;
  if (state.times.has_value()) {
    StopwatchThread& thread = threads_.Get();
    if (thread.at_arrival.has_value()) {
      arrival.taken = (*state.times - *thread.at_arrival).taken - thread.taken_in_vain;
      arrival.taken_in_vain = static_cast<int64_t>(thread.taken_in_vain);
    }
    thread.at_arrival = state.times;
    thread.taken_in_vain = 0;
  }
  const std::lock_guard<std::mutex> lock(arrivals_mutex_);
  arrival.iteration = num_finished_;
  auto& arrivals = *measurement.arrivals;
  if (arrivals.size() == options_.arrivals_limit) {
    // Of whole iterations, so that what is left of an iteration can be counted.
    const int64_t oldest = arrivals.front().iteration;
    while (!arrivals.empty() && arrivals.front().iteration == oldest) arrivals.pop_front();
  }
  arrivals.push_back(arrival);
  state.arrival_number = measurement.num_arrivals++;
}

std::vector<StopwatchArrivals> StopwatchCore::TakeArrivals() {
  std::vector<StopwatchArrivals> taken;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::lock_guard<std::mutex> arrivals_lock(arrivals_mutex_);
  for (StopwatchMeasurement* measurement : measurements_) {
    if (!measurement->arrivals.has_value() || measurement->arrivals->empty()) continue;
    taken.push_back({measurement->name, {measurement->arrivals->begin(), measurement->arrivals->end()}});
    measurement->arrivals->clear();
  }
  return taken;
}

void StopwatchCore::ReadDeviceEvents() const {
  const std::lock_guard<std::mutex> lock(device_mutex_);
  while (!pending_.empty() && device_events_->HasHappened(pending_.front().end)) {
    const PendingDeviceInterval& interval = pending_.front();
    const std::optional<uint64_t> duration = device_events_->Between(interval.start, interval.end);
    if (duration.has_value()) interval.measurement->on_device->Add(*duration, 0);
    device_events_->GiveBack(interval.start);
    device_events_->GiveBack(interval.end);
    pending_.pop_front();
  }
}

void StopwatchCore::Start(StopwatchMeasurement& measurement, Place place) {
  if (__builtin_expect(!enabled(), 0)) return RecordBegin(measurement, clock_.Ticks(), 0);
  uint32_t state = StopwatchMeasurement::kIdle;
  if (!measurement.state.compare_exchange_strong(state, StopwatchMeasurement::kChanging,
                                                 std::memory_order_acquire)) {
    return Misuse(absl::StrCat("Start(", Quoted(measurement.name), ") at ", At(place), " on thread ",
                               ThisThreadId(), ", but it runs since ", At(measurement.place.Load()),
                               ", started by thread ", measurement.thread.load(std::memory_order_relaxed),
                               "; end it first"));
  }
  has_started_.store(true, std::memory_order_relaxed);
  const int thread = threads_.Get().id.load(std::memory_order_relaxed);
  measurement.thread.store(thread, std::memory_order_relaxed);
  measurement.place.Store(place);
  measurement.counted = counting_.load(std::memory_order_relaxed);
  if (__builtin_expect(measurement.hooks.load(std::memory_order_relaxed) != 0, 0)) {
    BeforeStart(measurement, measurement.hook_state, false, measurement.counted);
  }
  measurement.start = clock_.Ticks();
  RecordBegin(measurement, measurement.start, thread);
  measurement.state.store(StopwatchMeasurement::kRunning, std::memory_order_release);
}

void StopwatchCore::End(StopwatchMeasurement& measurement, Place place) {
  uint64_t now = clock_.Ticks();
  if (__builtin_expect(!enabled(), 0)) return RecordEnd(measurement, now, 0);
  uint32_t state = StopwatchMeasurement::kRunning;
  if (!measurement.state.compare_exchange_strong(state, StopwatchMeasurement::kChanging,
                                                 std::memory_order_acquire)) {
    return Misuse(absl::StrCat("End(", Quoted(measurement.name), ") at ", At(place), " on thread ",
                               ThisThreadId(), ", but it does not run; start it first"));
  }
  const bool has_hooks = measurement.hook_state.hooks != 0;
  if (__builtin_expect(has_hooks, 0)) {
    BeforeEnd(measurement, measurement.hook_state);
    now = clock_.Ticks();
  }
  if (measurement.counted) {
    StopwatchThread& thread = threads_.Get();
    Child(thread.root, measurement, thread).intervals.Add(Since(measurement.start, now), 0);
  }
  RecordEnd(measurement, now, measurement.thread.load(std::memory_order_relaxed));
  if (__builtin_expect(has_hooks, 0)) AfterEnd(measurement, measurement.hook_state, false);
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
  if (__builtin_expect(measurement.hooks.load(std::memory_order_relaxed) != 0, 0)) {
    BeforeStart(measurement, frame->hook_state, true, frame->counted);
  }
  frame->start = clock_.Ticks();
  RecordBegin(measurement, frame->start, thread.id.load(std::memory_order_relaxed));
  return frame;
}

void StopwatchCore::EndScope(StopwatchFrame* frame) {
  uint64_t now = clock_.Ticks();
  StopwatchThread& thread = *frame->thread;
  StopwatchFrame* const innermost = thread.innermost.load(std::memory_order_relaxed);
  StopwatchRecord& record = *frame->record.load(std::memory_order_relaxed);
  if (__builtin_expect(innermost != frame || &thread != &threads_.Get(), 0)) {
    return MisuseOfScope(*frame, *innermost);
  }
  StopwatchMeasurement& measurement = *record.measurement;
  const bool has_hooks = frame->hook_state.hooks != 0;
  if (__builtin_expect(has_hooks, 0)) {
    BeforeEnd(measurement, frame->hook_state);
    now = clock_.Ticks();
  }
  if (frame->counted) {
    const uint64_t duration = Since(frame->start, now);
    record.intervals.Add(duration, frame->inner_duration);
    frame->outer->inner_duration += duration;
  }
  RecordEnd(measurement, now, thread.id.load(std::memory_order_relaxed));
  if (__builtin_expect(has_hooks, 0)) AfterEnd(measurement, frame->hook_state, true);
  thread.innermost.store(frame->outer, std::memory_order_release);
}

void StopwatchCore::MisuseOfScope(const StopwatchFrame& ended, const StopwatchFrame& innermost) {
  const auto describe = [](const StopwatchFrame& frame) {
    const StopwatchMeasurement* const measurement = frame.record.load(std::memory_order_relaxed)->measurement;
    if (measurement == nullptr) return std::string("none");
    return absl::StrCat(Quoted(measurement->name), " of ", At(frame.place.Load()));
  };
  const std::string message = absl::StrCat("the scope ", describe(ended), " ends on thread ", ThisThreadId());
  if (ended.thread != &threads_.Get()) {
    return Misuse(absl::StrCat(message, ", but began on thread ", ended.thread->id.load(),
                               "; make it a local variable, or use Start() and End()"));
  }
  Misuse(absl::StrCat(message, ", but the innermost scope is ", describe(innermost), "; scopes must nest"));
}

void StopwatchCore::StartOneTime(std::string_view name, Place place) {
  if (enabled() && (hooks_of_all_ & kSynchronizeHook) != 0) Synchronize();
  const uint64_t now = clock_.Ticks();
  if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
    recorder->BeginRange(EventCategory::kMeasurement, name, now, std::hash<std::string_view>()(name));
  }
  if (!enabled()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const OneTime& known : one_time_) {
    if (known.name != name) continue;
    return Misuse(absl::StrCat("StartOneTime(", Quoted(name), ") at ", At(place), " on thread ",
                               ThisThreadId(), ", but it was started at ", At(known.place), " by thread ",
                               known.thread, "; it can run but once"));
  }
  FlightRecorder::Measurement* const flight =
      flight_recorder_ == nullptr ? nullptr : flight_recorder_->Add(name, FlightOperation());
  if (flight != nullptr) FlightRecorder::Begin(flight, now, ThisThreadId());
  one_time_.push_back({std::string(name), now, 0, true, ThisThreadId(), place, flight});
}

void StopwatchCore::EndOneTime(std::string_view name, Place place) {
  if (enabled() && (hooks_of_all_ & kSynchronizeHook) != 0) Synchronize();
  const uint64_t now = clock_.Ticks();
  if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
    recorder->EndRange(EventCategory::kMeasurement, now, std::hash<std::string_view>()(name));
  }
  if (!enabled()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (OneTime& known : one_time_) {
    if (known.name != name || !known.running) continue;
    known.running = false;
    known.duration = Since(known.start, now);
    if (known.flight != nullptr) FlightRecorder::End(known.flight, now, ThisThreadId());
    return;
  }
  Misuse(absl::StrCat("EndOneTime(", Quoted(name), ") at ", At(place), " on thread ", ThisThreadId(),
                      ", but it does not run; start it first"));
}

// The first few of all that stands in the way of FinishIter(), or "".
std::string StopwatchCore::WhatRuns() const {
  constexpr int kMaxNamed = 20;
  std::string result;
  int num_running = 0;
  const auto add = [&](const char* what, const StopwatchMeasurement& measurement, Place place, int thread) {
    if (++num_running > kMaxNamed) return;
    absl::StrAppend(&result, "\n  ", what, Quoted(measurement.name), ", started at ", At(place),
                    " by thread ", thread);
  };
  for (const StopwatchMeasurement* measurement : measurements_) {
    if (measurement->state.load(std::memory_order_acquire) == StopwatchMeasurement::kIdle) continue;
    add("", *measurement, measurement->place.Load(), measurement->thread.load(std::memory_order_relaxed));
  }
  const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
  for (const StopwatchThread* thread : threads_.all()) {
    const StopwatchFrame* frame = thread->innermost.load(std::memory_order_acquire);
    for (; frame != &thread->outermost; frame = frame->outer) {
      add("scope ", *frame->record.load(std::memory_order_relaxed)->measurement, frame->place.Load(),
          thread->id.load(std::memory_order_relaxed));
    }
  }
  if (num_running > kMaxNamed) absl::StrAppend(&result, "\n  and ", num_running - kMaxNamed, " more");
  return result;
}

bool StopwatchCore::FinishIter(Place place) {
  if (!enabled()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const std::string running = WhatRuns(); !running.empty()) {
    Misuse(absl::StrCat("FinishIter() at ", At(place), " on thread ", ThisThreadId(),
                        ", but these run:", running));
    return false;
  }
  const uint64_t now = clock_.Ticks();
  if (counting_.load(std::memory_order_relaxed)) {
    const uint64_t duration = iteration_start_.has_value() ? Since(*iteration_start_, now) : 0;
    iteration_.Add(duration, 0);
    iteration_series_.Append(static_cast<float>(duration) * 1e-12f);
    CloseIteration(duration);
  } else {
    StopwatchThread& thread = threads_.Get();
    const std::optional<ThreadTimes> times = ReadTimes(thread);
    BeginOwnTimes(thread, times, times.has_value() ? environment_.read_process_cpu_time() : 0);
  }
  iteration_start_ = now;
  ++num_finished_;
  if (flight_recorder_ != nullptr) flight_recorder_->FinishIter(now, ThisThreadId());
  counting_.store(num_finished_ >= options_.num_warmup_iters, std::memory_order_relaxed);
  if (device_events_ != nullptr) ReadDeviceEvents();
  const int64_t num_measured = num_finished_ - options_.num_warmup_iters;
  return num_measured > 0 && options_.print_every_n_iters > 0 &&
         num_measured % options_.print_every_n_iters == 0;
}

void StopwatchCore::CloseIteration(uint64_t duration) {
  for (StopwatchMeasurement* measurement : measurements_) {
    measurement->count = 0;
    measurement->total = 0;
  }
  {
    const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
    for (const StopwatchThread* thread : threads_.all()) {
      for (const auto& record : thread->records) {
        const IntervalAccumulator::Totals totals = record->intervals.ReadTotals();
        record->measurement->count += totals.count;
        record->measurement->total += totals.total;
      }
    }
  }
  AddOwnTimes(duration);
  for (StopwatchMeasurement* measurement : measurements_) {
    const uint64_t of_measurement = static_cast<uint64_t>(measurement->total - measurement->finished_total);
    if (measurement->count != measurement->finished_count) measurement->per_iteration.Add(of_measurement, 0);
    measurement->series.Append(static_cast<float>(of_measurement) * 1e-12f);
    measurement->finished_count = measurement->count;
    measurement->finished_total = measurement->total;
  }
}

void StopwatchCore::Print(const Stopwatch& stopwatch) const {
  if (options_.print) return options_.print(stopwatch);
  PrintLines(stopwatch.Table());
}

void StopwatchCore::AtExit(const Stopwatch& stopwatch) const { options_.at_exit(stopwatch); }

void StopwatchCore::Misuse(const std::string& message) const {
  ReportMisuse(options_.on_misuse, absl::StrCat("stopwatch: ", message));
  num_misuses_.fetch_add(1, std::memory_order_relaxed);
}

void StartByName(StopwatchCore& core, const char* name, size_t size, const char* file, int line) {
  core.Start(core.Find(std::string_view(name, size)), {file, line});
}

void StartByHandle(StopwatchCore& core, Stopwatch::Measurement& measurement, const char* file, int line) {
  core.Start(core.Find(measurement), {file, line});
}

void EndByName(StopwatchCore& core, const char* name, size_t size, const char* file, int line) {
  core.End(core.Find(std::string_view(name, size)), {file, line});
}

void EndByHandle(StopwatchCore& core, Stopwatch::Measurement& measurement, const char* file, int line) {
  core.End(core.Find(measurement), {file, line});
}

StopwatchFrame* BeginScopeByName(StopwatchCore& core, const char* name, size_t size, const char* file,
                                 int line) {
  return core.BeginScope(core.Find(std::string_view(name, size)), {file, line});
}

StopwatchFrame* BeginScopeByHandle(StopwatchCore& core, Stopwatch::Measurement& measurement, const char* file,
                                   int line) {
  return core.BeginScope(core.Find(measurement), {file, line});
}

void EndScope(StopwatchFrame* frame) { frame->core->EndScope(frame); }

void StartOneTime(StopwatchCore& core, std::string_view name, Place place) { core.StartOneTime(name, place); }

void EndOneTime(StopwatchCore& core, std::string_view name, Place place) { core.EndOneTime(name, place); }

void FinishIter(StopwatchCore& core, const Stopwatch& stopwatch, Place place) {
  if (core.FinishIter(place)) core.Print(stopwatch);
}

}  // namespace ott::internal
