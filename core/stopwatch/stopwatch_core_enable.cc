// How a StopwatchCore is switched on and off, and what its measurements are told to do besides.

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/stopwatch/stopwatch_core.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/nvtx/nvtx.h"

namespace ott::internal {

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
  if (options.emit_nvtx) OTT_RETURN_IF_ERROR(NvtxStatus());
  if (!options.cpu_usage_measurement.empty()) OTT_RETURN_IF_ERROR(environment_.read_cpu_times().status());
  switch (options.device_sync) {
    case Stopwatch::DeviceSync::kNone:
      return absl::OkStatus();
    case Stopwatch::DeviceSync::kDevice:
      return environment_.synchronize_device();
    case Stopwatch::DeviceSync::kStream:
      return environment_.synchronize_stream(options.stream);
    case Stopwatch::DeviceSync::kEvents:
      OTT_ASSIGN_OR_RETURN(device_events_, environment_.create_device_events(options.stream));
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError("device_sync is none of its values");
}

absl::Status StopwatchCore::Enable(const Stopwatch::Options& options, Place place) {
  const std::lock_guard<std::mutex> lock(mutex_);
  OTT_RETURN_IF_ERROR(CheckNotEnabled("stopwatch", enabled_at_, place, recorder_));
  OTT_RETURN_IF_ERROR(WithContext("stopwatch", CheckOptions(options)));
  enabled_at_ = place;
  options_ = options;
  if (options.device_sync == Stopwatch::DeviceSync::kEvents) {
    hooks_of_all_ |= kEventsHook;
  } else if (options.device_sync != Stopwatch::DeviceSync::kNone) {
    hooks_of_all_ |= kSynchronizeHook;
  }
  if (options.emit_nvtx) hooks_of_all_ |= kNvtxHook;
  cpu_usage_measurement_ = options.cpu_usage_measurement;
  ChooseClock();
  observer_seconds_per_interval_ = CalibrateCost();
  iteration_series_ = IterationSeries(options.series_limit);
  // Those that a profiler's window has met before.
  for (StopwatchMeasurement* measurement : measurements_) Configure(*measurement);
  if (!measurements_.empty()) iteration_start_ = clock_.Ticks();
  counting_ = options.num_warmup_iters == 0;
  enabled_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

namespace {

// As it was made. REQUIRES: nobody else uses it
template <typename T>
void Renew(T& object) {
  object.~T();
  new (&object) T();
}

}  // namespace

// Threads and handles keep what they found: measurements and records stay, and become empty.
void StopwatchCore::Disable() {
  const std::lock_guard<std::mutex> lock(mutex_);
  enabled_.store(false, std::memory_order_release);
  counting_ = false;
  flight_recorder_ = nullptr;
  operations_.clear();
  if (device_events_ != nullptr) {
    const std::lock_guard<std::mutex> device_lock(device_mutex_);
    for (const PendingDeviceInterval& interval : pending_) {
      device_events_->GiveBack(interval.start);
      device_events_->GiveBack(interval.end);
    }
    pending_.clear();
  }
  for (StopwatchMeasurement* measurement : measurements_) {
    measurement->hooks.store(0, std::memory_order_release);
    measurement->flight.store(nullptr, std::memory_order_release);
    measurement->collective = false;
    Renew(measurement->per_iteration);
    measurement->series = IterationSeries();
    measurement->count = measurement->finished_count = 0;
    measurement->total = measurement->finished_total = 0;
    measurement->on_device.reset();
    measurement->arrivals.reset();
    measurement->own = OwnTimeRecorder();
    measurement->waiting = 0;
    measurement->taken = 0;
    measurement->is_inside = false;
  }
  {
    const std::lock_guard<std::mutex> threads_lock(threads_.mutex());
    for (StopwatchThread* thread : threads_.all()) {
      Renew(thread->root.intervals);
      thread->read_at.reset();
      thread->last_collective_end = 0;
      thread->at_collective_end = {};
      thread->in_collectives = {};
      thread->at_iteration.reset();
      thread->at_arrival.reset();
      thread->taken_in_vain = 0;
      for (const auto& record : thread->records) Renew(record->intervals);
    }
  }
  one_time_.clear();
  cpu_usage_ = CpuUsage();
  cpu_usage_measurement_.clear();
  num_finished_ = 0;
  num_misuses_ = 0;
  hooks_of_all_ = 0;
  iteration_start_.reset();
  Renew(iteration_);
  iteration_series_ = IterationSeries();
  work_ = OwnTimeRecorder();
  own_work_ = {};
  finishing_thread_ = nullptr;
  {
    const std::lock_guard<std::mutex> arrivals_lock(arrivals_mutex_);
    waiting_ = 0;
  }
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
  measurement.flight.store(
      flight_recorder_ == nullptr ? nullptr : flight_recorder_->Add(measurement.name, operation),
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
  if (found != by_name_.end()) found->second->hooks.fetch_or(kCpuUsageHook);
  return absl::OkStatus();
}

void StopwatchCore::Configure(StopwatchMeasurement& measurement) {
  measurement.collective = MatchesAnyGlob(measurement.name, options_.collective_measurements);
  uint32_t hooks = hooks_of_all_;
  if (!cpu_usage_measurement_.empty() && measurement.name == cpu_usage_measurement_) hooks |= kCpuUsageHook;
  if (measurement.collective) hooks |= kCollectiveHook;
  if (measurement.collective && options_.arrivals_limit > 0) {
    hooks |= kArrivalHook;
    measurement.arrivals.emplace();
  }
  if (device_events_ != nullptr) measurement.on_device = std::make_unique<IntervalAccumulator>();
  measurement.series = IterationSeries(options_.series_limit);
  SetFlight(measurement);
  measurement.hooks.store(hooks, std::memory_order_release);
}

}  // namespace ott::internal
