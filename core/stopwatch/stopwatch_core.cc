#include "core/stopwatch/stopwatch_core.h"

#include <pthread.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_sink.h"

namespace ott::internal {

StopwatchCore::StopwatchCore() : StopwatchCore({Clock::Steady()}, std::nullopt) {
  // A child that is forked while another thread has the mutexes would wait for them forever.
  static StopwatchCore* of_this_process;
  of_this_process = this;
  const auto lock = [] {
    of_this_process->mutex_.lock();
    of_this_process->threads_.mutex().lock();
  };
  const auto unlock = [] {
    of_this_process->threads_.mutex().unlock();
    of_this_process->mutex_.unlock();
  };
  static const int registered = pthread_atfork(lock, unlock, unlock);
  static_cast<void>(registered);
}

StopwatchCore::StopwatchCore(const Stopwatch::Environment& environment)
    : StopwatchCore(environment, environment.clock) {}

StopwatchCore::StopwatchCore(const Stopwatch::Environment& environment, std::optional<Clock> given_clock)
    : given_clock_(given_clock),
      environment_(environment),
      // The state of a thread that left a scope running is not used again, so that FinishIter() names it.
      threads_(
          [](StopwatchThread& thread) {
            thread.id = ThisThreadId();
            // The kernel counts the times of each thread from its beginning.
            thread.work = ThreadWork();
          },
          [](StopwatchThread& thread) { return thread.innermost == &thread.outermost; }),
      hooks_(environment) {}

absl::Status StopwatchCore::CheckOptions(const Stopwatch::Options& options) {
  if (options.num_warmup_iters < 0 || options.print_every_n_iters < 0 || options.series_limit == 1 ||
      options.series_limit > Stopwatch::kMaxSeriesLimit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_warmup_iters ", options.num_warmup_iters, " and print_every_n_iters ",
        options.print_every_n_iters, " must not be negative, and series_limit ", options.series_limit,
        " must be 0, or at least 2 and at most ", Stopwatch::kMaxSeriesLimit));
  }
  // A negative number of a configuration.
  if (options.arrivals_limit > size_t{std::numeric_limits<int64_t>::max()}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "arrivals_limit ", static_cast<int64_t>(options.arrivals_limit), " must not be negative"));
  }
  return hooks_.Check(options);
}

absl::Status StopwatchCore::Enable(const Stopwatch::Options& options, Place place) {
  const std::lock_guard<std::mutex> lock(mutex_);
  OTT_RETURN_IF_ERROR(CheckNotEnabled("stopwatch", enabled_at_, place, recorder_));
  OTT_RETURN_IF_ERROR(WithContext("stopwatch", CheckOptions(options)));
  enabled_at_ = place;
  options_ = options;
  cpu_usage_measurement_ = options.cpu_usage_measurement;
  ChooseClock();
  hooks_.Enable(options, clock_);
  observer_seconds_per_interval_ = CalibrateCost();
  iteration_series_ = IterationSeries(options.series_limit);
  // Those that a profiler's window has met before.
  for (StopwatchMeasurement* measurement : measurements_) Configure(*measurement);
  counting_ = options.num_warmup_iters == 0;
  enabled_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

// Threads and handles keep what they found: measurements and records stay, and become empty.
void StopwatchCore::Disable() {
  const std::lock_guard<std::mutex> lock(mutex_);
  enabled_.store(false, std::memory_order_release);
  counting_ = false;
  flight_recorder_ = nullptr;
  operations_.clear();
  hooks_.Clear();
  for (StopwatchMeasurement* measurement : measurements_) measurement->Clear();
  {
    const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
    for (StopwatchThread* thread : threads_.all()) thread->Clear();
  }
  one_time_ = OneTimeMeasurements();
  cpu_usage_measurement_.clear();
  num_finished_ = 0;
  misuses_.Clear();
  iteration_start_.reset();
  Renew(iteration_);
  iteration_series_ = IterationSeries();
  options_ = Stopwatch::Options();
  enabled_at_.reset();
}

void StopwatchCore::ChooseClock() {
  if (has_chosen_clock_) return;
  clock_ = given_clock_.has_value() ? *given_clock_ : Clock::Fastest();
  has_chosen_clock_ = true;
}

void StopwatchCore::RecordInto(EventRecorder* recorder) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ChooseClock();
  recorder_.store(recorder, std::memory_order_release);
}

void StopwatchCore::RecordFlight(FlightRecorder* recorder) {
  const std::lock_guard<std::mutex> lock(mutex_);
  flight_recorder_ = recorder;
  for (StopwatchMeasurement* measurement : measurements_) SetFlight(*measurement);
}

void StopwatchCore::SetOperation(std::string_view name, const FlightOperation& operation) {
  StopwatchMeasurement& measurement = Find(name);
  const std::lock_guard<std::mutex> lock(mutex_);
  operations_[measurement.name] = operation;
  SetFlight(measurement);
}

void StopwatchCore::SetFlight(StopwatchMeasurement& measurement) {
  FlightOperation operation;
  if (const auto known = operations_.find(measurement.name); known != operations_.end()) {
    operation = known->second;
  } else if (measurement.collective) {
    operation.role = FlightRole::kCollective;
  }
  // Sampled ones are too many: they would drive out what ranks waited for.
  measurement.flight.store(flight_recorder_ == nullptr || measurement.sampled
                               ? nullptr
                               : flight_recorder_->Add(measurement.name, operation),
                           std::memory_order_release);
}

// The quickest of a few rounds, as what disturbs only ever adds.
double StopwatchCore::CalibrateCost() const {
  constexpr int kRounds = 10;
  constexpr int kIntervals = 100;
  StopwatchCore scratch(environment_);
  scratch.clock_ = clock_;
  scratch.counting_ = true;
  Stopwatch::Measurement measurement("calibration");
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t start = clock_.Ticks();
    for (int i = 0; i < kIntervals; ++i) {
      scratch.EndScope(scratch.BeginScope(scratch.Find(measurement), Place::Current()));
    }
    least = std::min(least, Since(start, clock_.Ticks()));
  }
  return static_cast<double>(least) * 1e-12 / kIntervals;
}

absl::Status StopwatchCore::SetCpuUsageMeasurement(std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cpu_usage_measurement_ == name) return absl::OkStatus();
  if (!cpu_usage_measurement_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("stopwatch: CPU usage is measured during ",
                                                      Quoted(cpu_usage_measurement_), " already, not during ",
                                                      Quoted(name)));
  }
  OTT_RETURN_IF_ERROR(environment_.read_cpu_times().status());
  cpu_usage_measurement_ = std::string(name);
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) IntervalHooks::WatchCpuUsage(found->second->hooks);
  return absl::OkStatus();
}

void StopwatchCore::Configure(StopwatchMeasurement& measurement) {
  measurement.collective = MatchesAnyGlob(measurement.name, options_.collective_measurements);
  measurement.sampled = MatchesAnyGlob(measurement.name, options_.sampled_measurements);
  measurement.series = IterationSeries(options_.series_limit);
  SetFlight(measurement);
  if (!cpu_usage_measurement_.empty() && measurement.name == cpu_usage_measurement_) {
    IntervalHooks::WatchCpuUsage(measurement.hooks);
  }
  const bool is_observer = measurement.collective && measurement.name == options_.observer_measurement;
  const auto kind = is_observer              ? IntervalHooks::Kind::kObserver
                    : measurement.collective ? IntervalHooks::Kind::kCollective
                                             : IntervalHooks::Kind::kOther;
  hooks_.SetUp(measurement.hooks, kind, measurement.sampled);
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
  if (StopwatchMeasurement* const known = thread.FindKnown(name); known != nullptr) return *known;
  StopwatchMeasurement& measurement = FindOrAdd(name);
  thread.AddKnown(measurement);
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
  }
  measurements_.push_back(added.get());
  return *by_name_.emplace(added->name, std::move(added)).first->second;
}

inline StopwatchRecord& StopwatchCore::Child(StopwatchRecord& parent, StopwatchMeasurement& measurement,
                                             StopwatchThread& thread) {
  StopwatchRecord* const child = StopwatchThread::FindChild(parent, measurement);
  if (__builtin_expect(child != nullptr, 1)) return *child;
  const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
  return thread.AddChild(parent, measurement);
}

// Adds the time in a collective measurement to all that it was inside of.
void StopwatchCore::AfterEnd(const HookedInterval& interval, StopwatchThread& thread) {
  const uint64_t waited = hooks_.AfterEnd(interval);
  if (waited == 0) return;
  const uint64_t now = clock_.Ticks();
  // A collective that was started by a call may have begun before the measurement that it ends in.
  const auto add_to = [&](StopwatchMeasurement& measurement, uint64_t start) {
    measurement.hooks.work.waiting.fetch_add(std::min(waited, Since(start, now)), std::memory_order_relaxed);
  };
  const StopwatchFrame* frame = thread.innermost.load(std::memory_order_relaxed);
  for (; frame != &thread.outermost; frame = frame->outer) {
    add_to(*frame->record.load(std::memory_order_relaxed)->measurement, frame->start);
  }
  // Few programs start and end measurements by calls.
  if (!has_started_.load(std::memory_order_relaxed)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const int id = thread.id.load(std::memory_order_relaxed);
  for (StopwatchMeasurement* measurement : measurements_) {
    if (measurement->state.load(std::memory_order_acquire) != StopwatchMeasurement::kRunning) continue;
    if (measurement->thread.load(std::memory_order_relaxed) != id) continue;
    add_to(*measurement, measurement->start);
  }
}

void StopwatchCore::NoteStart(StopwatchMeasurement& measurement) {
  if (!IntervalHooks::IsFirstStart(measurement.hooks)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!iteration_start_.has_value()) iteration_start_ = clock_.Ticks();
}

void StopwatchCore::Start(StopwatchMeasurement& measurement, Place place) {
  if (__builtin_expect(!enabled(), 0)) return RecordBegin(measurement, clock_.Ticks(), 0);
  uint32_t state = StopwatchMeasurement::kIdle;
  if (!measurement.state.compare_exchange_strong(state, StopwatchMeasurement::kChanging,
                                                 std::memory_order_acquire)) {
    const std::string call = absl::StrCat("Start(", Quoted(measurement.name), ")");
    return ReportMisuse(
        absl::StrCat(call, " while it runs"),
        absl::StrCat(call, " at ", At(place), " on thread ", ThisThreadId(), ", but it runs since ",
                     At(measurement.place.Load()), ", started by thread ",
                     measurement.thread.load(std::memory_order_relaxed), "; end it first"));
  }
  has_started_.store(true, std::memory_order_relaxed);
  StopwatchThread& thread = threads_.Get();
  const int id = thread.id.load(std::memory_order_relaxed);
  measurement.thread.store(id, std::memory_order_relaxed);
  measurement.place.Store(place);
  measurement.counted = counting_.load(std::memory_order_relaxed);
  if (__builtin_expect(measurement.hooks.enabled.load(std::memory_order_relaxed) != 0, 0)) {
    NoteStart(measurement);
    const bool is_inside = thread.innermost.load(std::memory_order_relaxed) != &thread.outermost;
    hooks_.BeforeStart(
        {measurement.name, measurement.hooks, measurement.hook_state, thread.work, false, is_inside},
        measurement.counted, num_finished_);
  }
  measurement.start = clock_.Ticks();
  RecordBegin(measurement, measurement.start, id);
  measurement.state.store(StopwatchMeasurement::kRunning, std::memory_order_release);
}

void StopwatchCore::End(StopwatchMeasurement& measurement, Place place) {
  uint64_t now = clock_.Ticks();
  if (__builtin_expect(!enabled(), 0)) return RecordEnd(measurement, now, 0);
  uint32_t state = StopwatchMeasurement::kRunning;
  if (!measurement.state.compare_exchange_strong(state, StopwatchMeasurement::kChanging,
                                                 std::memory_order_acquire)) {
    const std::string call = absl::StrCat("End(", Quoted(measurement.name), ")");
    return ReportMisuse(absl::StrCat(call, " without Start"),
                        absl::StrCat(call, " at ", At(place), " on thread ", ThisThreadId(),
                                     ", but it does not run; start it first"));
  }
  StopwatchThread& thread = threads_.Get();
  const HookedInterval hooked = {
      measurement.name, measurement.hooks, measurement.hook_state, thread.work, false, false};
  const bool has_hooks = measurement.hook_state.hooks != 0;
  if (__builtin_expect(has_hooks, 0)) {
    hooks_.BeforeEnd(hooked);
    now = clock_.Ticks();
  }
  if (measurement.counted) {
    Child(thread.root, measurement, thread).intervals.Add(Since(measurement.start, now), 0);
  }
  RecordEnd(measurement, now, measurement.thread.load(std::memory_order_relaxed));
  if (__builtin_expect(has_hooks, 0)) AfterEnd(hooked, thread);
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
  if (__builtin_expect(measurement.hooks.enabled.load(std::memory_order_relaxed) != 0, 0)) {
    NoteStart(measurement);
    hooks_.BeforeStart({measurement.name, measurement.hooks, frame->hook_state, thread.work, true,
                        outer != &thread.outermost},
                       frame->counted, num_finished_);
  }
  frame->start = clock_.Ticks();
  RecordBegin(measurement, frame->start, thread.id.load(std::memory_order_relaxed));
  return frame;
}

[[gnu::always_inline]] inline void StopwatchCore::CloseScope(StopwatchThread& thread, uint64_t now,
                                                             bool counted) {
  StopwatchFrame* const frame = thread.innermost.load(std::memory_order_relaxed);
  StopwatchRecord& record = *frame->record.load(std::memory_order_relaxed);
  StopwatchMeasurement& measurement = *record.measurement;
  // Most scopes have no hooks, and building this for them would take as long as measuring.
  const auto hooked = [&]() -> HookedInterval {
    return {measurement.name, measurement.hooks, frame->hook_state, thread.work, true, false};
  };
  const bool has_hooks = frame->hook_state.hooks != 0;
  if (__builtin_expect(has_hooks, 0)) {
    hooks_.BeforeEnd(hooked());
    now = clock_.Ticks();
  }
  if (counted) {
    const uint64_t duration = Since(frame->start, now);
    record.intervals.Add(duration, frame->inner_duration);
    frame->outer->inner_duration += duration;
  }
  RecordEnd(measurement, now, thread.id.load(std::memory_order_relaxed));
  if (__builtin_expect(has_hooks, 0)) AfterEnd(hooked(), thread);
  thread.innermost.store(frame->outer, std::memory_order_release);
}

void StopwatchCore::EndScope(StopwatchFrame* frame) {
  const uint64_t now = clock_.Ticks();
  StopwatchThread& thread = *frame->thread;
  StopwatchFrame* const innermost = thread.innermost.load(std::memory_order_relaxed);
  if (__builtin_expect(innermost != frame || &thread != &threads_.Get(), 0)) {
    MisuseOfScope(*frame, *innermost);
    frame->ended_wrongly.store(true, std::memory_order_release);
    return;
  }
  CloseScope(thread, now, frame->counted);
  if (__builtin_expect(frame->outer->ended_wrongly.load(std::memory_order_acquire), 0)) {
    CloseScopesEndedWrongly(thread);
  }
}

void StopwatchCore::CloseScopesEndedWrongly(StopwatchThread& thread) {
  for (StopwatchFrame* frame = thread.innermost.load(std::memory_order_relaxed);
       frame->ended_wrongly.load(std::memory_order_acquire); frame = frame->outer) {
    CloseScope(thread, clock_.Ticks(), false);
    frame->ended_wrongly.store(false, std::memory_order_relaxed);
  }
}

void StopwatchCore::MisuseOfScope(const StopwatchFrame& ended, const StopwatchFrame& innermost) {
  const auto describe = [](const StopwatchFrame& frame) {
    const StopwatchMeasurement* const measurement = frame.record.load(std::memory_order_relaxed)->measurement;
    if (measurement == nullptr) return std::string("none");
    return absl::StrCat(Quoted(measurement->name), " of ", At(frame.place.Load()));
  };
  const std::string message = absl::StrCat("the scope ", describe(ended), " ends on thread ", ThisThreadId());
  const std::string kind =
      absl::StrCat("scope ", Quoted(ended.record.load(std::memory_order_relaxed)->measurement->name));
  if (ended.thread != &threads_.Get()) {
    return ReportMisuse(absl::StrCat(kind, " ended on another thread"),
                        absl::StrCat(message, ", but began on thread ", ended.thread->id.load(),
                                     "; make it a local variable, or use Start() and End()"));
  }
  ReportMisuse(
      absl::StrCat(kind, " ended before what is inside of it"),
      absl::StrCat(message, ", but the innermost scope is ", describe(innermost), "; scopes must nest"));
}

void StopwatchCore::StartOneTime(std::string_view name, Place place) {
  if (enabled()) hooks_.SynchronizeIfAsked();
  const uint64_t now = clock_.Ticks();
  if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
    recorder->BeginRange(EventCategory::kMeasurement, name, now, std::hash<std::string_view>()(name));
  }
  if (!enabled()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string misuse = one_time_.Start(name, now, place, flight_recorder_);
  if (!misuse.empty()) ReportMisuse(absl::StrCat("StartOneTime(", Quoted(name), ") again"), misuse);
}

void StopwatchCore::EndOneTime(std::string_view name, Place place) {
  if (enabled()) hooks_.SynchronizeIfAsked();
  const uint64_t now = clock_.Ticks();
  if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
    recorder->EndRange(EventCategory::kMeasurement, now, std::hash<std::string_view>()(name));
  }
  if (!enabled()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string misuse = one_time_.End(name, now, place);
  if (!misuse.empty())
    ReportMisuse(absl::StrCat("EndOneTime(", Quoted(name), ") without StartOneTime"), misuse);
}

StopwatchCore::Running StopwatchCore::WhatRuns() const {
  constexpr int kMaxNamed = 20;
  Running result;
  int num_running = 0;
  const auto add = [&](const char* what, const StopwatchMeasurement& measurement, Place place, int thread) {
    if (++num_running == 1) result.first = Quoted(measurement.name);
    if (num_running > kMaxNamed) return;
    absl::StrAppend(&result.all, "\n  ", what, Quoted(measurement.name), ", started at ", At(place),
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
  if (num_running > kMaxNamed) absl::StrAppend(&result.all, "\n  and ", num_running - kMaxNamed, " more");
  return result;
}

bool StopwatchCore::FinishIter(Place place) {
  if (!enabled()) return false;
  CloseScopesEndedWrongly(threads_.Get());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const Running running = WhatRuns(); !running.all.empty()) {
    ReportMisuse(absl::StrCat("FinishIter() while ", running.first, " runs, so that no iteration counts"),
                 absl::StrCat("FinishIter() at ", At(place), " on thread ", ThisThreadId(),
                              ", but these run, and no iteration counts until they end:", running.all));
    return false;
  }
  const uint64_t now = clock_.Ticks();
  StopwatchThread& thread = threads_.Get();
  if (counting_.load(std::memory_order_relaxed)) {
    const uint64_t duration = iteration_start_.has_value() ? Since(*iteration_start_, now) : 0;
    iteration_.Add(duration, 0);
    iteration_series_.Append(static_cast<float>(duration) * 1e-12f);
    CloseIteration(thread, duration);
  } else {
    hooks_.work().StartIteration(thread.work);
  }
  iteration_start_ = now;
  ++num_finished_;
  if (flight_recorder_ != nullptr)
    flight_recorder_->FinishIter(now, thread.id.load(std::memory_order_relaxed));
  counting_.store(num_finished_ >= options_.num_warmup_iters, std::memory_order_relaxed);
  if (hooks_.device() != nullptr) hooks_.device()->Read();
  const int64_t num_measured = num_finished_ - options_.num_warmup_iters;
  return num_measured > 0 && options_.print_every_n_iters > 0 &&
         num_measured % options_.print_every_n_iters == 0;
}

void StopwatchCore::CloseIteration(StopwatchThread& finishing, uint64_t duration) {
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
  hooks_.work().FinishIteration(finishing.work, duration);
  for (StopwatchMeasurement* measurement : measurements_) {
    const uint64_t count = measurement->count - measurement->finished_count;
    const uint64_t of_measurement = static_cast<uint64_t>(measurement->total - measurement->finished_total);
    hooks_.FinishMeasurement(measurement->hooks, measurement->collective ? 0 : count, of_measurement);
    if (count != 0) measurement->per_iteration.Add(of_measurement, 0);
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

void StopwatchCore::ReportMisuse(const std::string& kind, const std::string& message) const {
  misuses_.Report(options_.on_misuse, kind, message);
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
